"""Which network addresses haft itself connects to when it uses a remote MCP server.

The person named the server, so the server's own host may have any address except those at which cloud providers serve
the credentials of a machine. Every other host (an authorization server, for example) is named by the server, and must
have a public address unless the server itself has a private one. A name is resolved once, its addresses are checked,
and the connection goes to exactly the address that was checked, so a second answer of the name server changes nothing.
If this machine must use a proxy, the proxy resolves the names, and decides about their addresses.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
import httpcore2
import httpx2
from httpcore2 import AnyIOBackend, AsyncNetworkBackend

from haft.sources.mcp.remote.machine_proxy import proxy_for

if TYPE_CHECKING:
    from httpcore2 import SOCKET_OPTION, AsyncNetworkStream

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA: Final = frozenset(
    ipaddress.ip_address(each)
    for each in ("100.100.100.200", "168.63.129.16", "169.254.169.254", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
_NEVER_PUBLIC: Final = tuple(
    ipaddress.ip_network(each) for each in ("192.0.0.0/24", "64:ff9b:1::/48", "fec0::/10", "::ffff:0:0:0/96")
)
_CONNECT_SECONDS: Final = 10.0
_MOST_ADDRESSES: Final = 8
EVENTS: Final = "haft.events"
"""The extension of an answer that holds its stream of events."""
FLOOD_BYTES: Final = 200_000_000
FLOOD_EVENTS: Final = 10_000
FLOOD_SECONDS: Final = 20.0
"""A server that sends so many bytes of events, or so many events, within this time is not heard any more."""
_OF_BODY: Final = ("content-encoding", "content-length", "transfer-encoding")


class AddressRefused(Exception):
    """A host has an address to which haft does not connect. The message says which."""


def is_public(address: Address) -> bool:
    """Whether an address, and the IPv4 address that it may carry, are servers' on the internet."""
    return all(_is_public(each) for each in _inner(address))


def is_metadata(address: Address) -> bool:
    """Whether an address may serve the credentials of this machine."""
    return any(each in _METADATA or each.is_link_local for each in _inner(address))


def _is_public(address: Address) -> bool:
    is_special = address.is_multicast or address in _METADATA
    return address.is_global and not is_special and not any(address in network for network in _NEVER_PUBLIC)


def _inner(address: Address) -> Iterator[Address]:
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            yield address.ipv4_mapped
        elif address.sixtofour is not None:
            yield address.sixtofour
        elif address.teredo is not None:
            yield from address.teredo
        elif int(address) >> 32 in (0x64FF9B << 64, 0):
            yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)


class ServerAddresses(AsyncNetworkBackend):
    """Opens the connections of one remote server, after it checked their addresses."""

    def __init__(self, host: str, port: int) -> None:
        self._own = (host.strip("[]").lower(), port)
        self._backend = AnyIOBackend()
        self.is_private: bool | None = None
        """Whether the server's own address is private; None if that is not known yet."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is the interface's)
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        """Connect to a checked address of the host. Raises `AddressRefused` if it has none."""
        seconds = min(timeout or _CONNECT_SECONDS, _CONNECT_SECONDS)
        name = host.strip("[]").lower()
        proxy = proxy_for(os.environ, name, port)
        if proxy is None:
            addresses = await self._checked(name, port, seconds)
            return await self._opened(addresses, port, seconds, local_address, socket_options)
        addresses = await resolved(proxy.host, proxy.port, seconds)
        stream = await self._opened(addresses, proxy.port, seconds, local_address, socket_options)
        try:
            await proxy.tunnel(stream, name, port, seconds)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _opened(
        self,
        addresses: Iterable[Address],
        port: int,
        seconds: float,
        local_address: str | None,
        socket_options: Iterable[SOCKET_OPTION] | None,
    ) -> AsyncNetworkStream:
        """A connection to the first of these addresses that answers."""
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._backend.connect_tcp(
                    str(address), port, seconds, local_address=local_address, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = failure or error
        raise failure or httpcore2.ConnectError("there is no address to connect to")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is the interface's)
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        raise AddressRefused("haft reaches MCP servers by TCP only")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def _checked(self, name: str, port: int, seconds: float) -> list[Address]:
        """The addresses of a host, if haft may connect to all of them."""
        found = await resolved(name, port, seconds)
        if any(is_metadata(each) for each in found):
            raise AddressRefused(f"`{name}` has an address at which machines keep credentials ({_words(found)})")
        public = [each for each in found if is_public(each)]
        are_private = len(public) < len(found)
        if (name, port) == self._own:
            # A server on the internet must not become a private one because its name has a private address, too.
            found, are_private = public or found, not public
            if are_private and self.is_private is False:
                raise AddressRefused(f"the address of `{name}` changed from a public one to a private one")
            self.is_private = are_private
        elif are_private:
            if self.is_private is None:  # Tokens are renewed before the first request to the server.
                await self._checked(*self._own, seconds)
            if not self.is_private:
                words = f"`{name}` has a private address ({_words(found)}), and the server has a public one"
                raise AddressRefused(words)
        return found


class NamedHosts(ServerAddresses):
    """Opens connections to hosts that the configuration names, such as the receivers of webhooks: to public addresses,
    or also to private ones, but never to those at which machines keep credentials."""

    def __init__(self, *, may_be_private: bool) -> None:
        super().__init__("", 0)
        self._may_be_private = may_be_private

    async def _checked(self, name: str, port: int, seconds: float) -> list[Address]:
        found = await resolved(name, port, seconds)
        if any(is_metadata(each) for each in found):
            raise AddressRefused(f"`{name}` has an address at which machines keep credentials ({_words(found)})")
        if not self._may_be_private and not all(is_public(each) for each in found):
            raise AddressRefused(f"`{name}` has a private address ({_words(found)})")
        return found


def named_hosts_only(certificates: ssl.SSLContext, *, may_be_private: bool) -> httpx2.AsyncHTTPTransport:
    """HTTP to hosts that the configuration names: see `NamedHosts`."""
    made = httpx2.AsyncHTTPTransport(verify=certificates)
    made._pool = httpcore2.AsyncConnectionPool(
        ssl_context=certificates,
        max_connections=20,
        keepalive_expiry=5.0,
        network_backend=NamedHosts(may_be_private=may_be_private),
    )
    return made


async def resolved(host: str, port: int, seconds: float) -> list[Address]:
    """The addresses of a name. Raises `httpcore2.ConnectError` if it has none, or if the answer takes too long."""
    try:
        return [ipaddress.ip_address(host.partition("%")[0])]
    except ValueError:
        pass
    try:
        with anyio.fail_after(seconds):
            rows = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise httpcore2.ConnectTimeout(f"the name `{host}` was not resolved within {seconds:g} seconds") from None
    except (OSError, UnicodeError) as error:
        raise httpcore2.ConnectError(f"the name `{host}` has no address: {_reason(error)}") from error
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows))
    if not addresses:
        raise httpcore2.ConnectError(f"the name `{host}` has no address")
    return addresses[:_MOST_ADDRESSES]


def _reason(error: Exception) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno and error.errno > 0 else str(error)


def _words(addresses: Iterable[Address]) -> str:
    return ", ".join(str(each) for each in addresses)


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """HTTP for one remote server: every connection goes to a checked address, every answer is bounded, and the
    credentials of the server go to the server alone."""

    def __init__(self, server: httpx2.URL, most_bytes: int, other_seconds: float) -> None:
        super().__init__()
        self._server = server
        self._most_bytes = most_bytes
        self._other_seconds = other_seconds
        self.addresses: Final = ServerAddresses(server.host, port_of(server))
        self.flood: Final = Flood()
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=self.addresses,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the server, or one of the login to another host."""
        if not same_origin(request.url, self._server):
            self._check_other(request)
        if "timeout" in request.extensions:
            return self._bounded(await super().handle_async_request(request))
        # The requests of a login carry no timeouts of their own: they are answered soon and shortly, or not at all.
        with _answered_within(request, self._other_seconds):
            response = self._bounded(await super().handle_async_request(request))
            await response.aread()
            return response

    def _check_other(self, request: httpx2.Request) -> None:
        url = request.url
        is_local = self._server.scheme == "http" and is_loopback_name(url.host)
        if url.scheme != "https" and not is_local:
            raise AddressRefused(f"the connection to `{url.scheme}://{url.host}` would not be encrypted")
        if request.headers.get("authorization", "").lower().startswith("bearer "):
            raise AddressRefused(f"a token of `{self._server.host}` is not sent to `{url.host}`")

    def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        """The answer, unpacked and bounded. Events are bounded one by one where they are read, and together here."""
        is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _OF_BODY]
        stream = EventStream(response, self.flood) if is_events else _BoundedStream(response, self._most_bytes)
        extensions = {**response.extensions, EVENTS: stream} if is_events else response.extensions
        return httpx2.Response(response.status_code, headers=kept, stream=stream, extensions=extensions)


@contextmanager
def _answered_within(request: httpx2.Request, seconds: float) -> Iterator[None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        raise httpx2.ReadTimeout(f"`{request.url.host}` did not answer within {seconds:g} seconds") from None


class TooLarge(httpx2.ReadError):
    """An answer has more bytes than haft reads."""


class Flood:
    """Counts the events of one server, and their bytes, also of those that it sends for calls that were cancelled."""

    def __init__(self) -> None:
        self._count = self._events = 0
        self._since = 0.0
        self.is_seen = False
        """Whether the server sent too much. Then haft reads no more events over this connection."""

    def add(self, piece: bytes) -> None:
        """Raises `TooLarge` if the server floods haft."""
        now = anyio.current_time()
        if now - self._since > FLOOD_SECONDS:
            self._since, self._count, self._events = now, 0, 0
        self._count += len(piece)
        self._events += piece.count(b"data:")
        self.is_seen = self.is_seen or self._count > FLOOD_BYTES or self._events > FLOOD_EVENTS
        if self.is_seen:
            raise TooLarge("the server floods haft with events")


class EventStream(httpx2.AsyncByteStream):
    """The bytes of events after they were unpacked."""

    def __init__(self, response: httpx2.Response, flood: Flood) -> None:
        self._response = response
        self._flood = flood
        self.is_abandoned = False
        """Whether the call was cancelled that the events are for. Then haft reads no more of them."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_bytes():
            if self.is_abandoned:
                return
            self._flood.add(piece)
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """The bytes of an answer after it was unpacked: a small answer may unpack to a huge one."""

    def __init__(self, response: httpx2.Response, most: int) -> None:
        self._response = response
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._response.aiter_bytes():
            count += len(piece)
            if count > self._most:
                raise TooLarge(f"the answer has more than {self._most:_} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def is_loopback_name(host: str) -> bool:
    """Whether a host, as it is written, is this machine."""
    return host in ("127.0.0.1", "localhost", "::1")


def port_of(url: httpx2.URL) -> int:
    """The port of an address, also if it is not written."""
    return url.port or (443 if url.scheme == "https" else 80)


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether two addresses have the same scheme, host and port, or the first is the encrypted form of the second on
    the usual ports."""
    if (one.scheme, one.host, port_of(one)) == (other.scheme, other.host, port_of(other)):
        return True
    is_upgrade = (one.scheme, other.scheme) == ("https", "http") and one.port is None and other.port is None
    return is_upgrade and one.host == other.host
