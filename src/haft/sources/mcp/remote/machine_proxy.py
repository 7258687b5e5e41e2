"""The HTTP proxy that this machine must use to reach the internet, from the host's own proxy variables.

As for confined calls, the proxy decides about addresses itself; connections to addresses and to `localhost` are direct.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import httpcore2

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkStream

_VARIABLES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_MOST_ANSWER: Final = 16_384


class MachineProxy(NamedTuple):
    """A proxy that tunnels connections (CONNECT)."""

    host: str
    port: int
    authorization: str | None

    async def tunnel(self, stream: AsyncNetworkStream, host: str, port: int, seconds: float) -> None:
        """Open a tunnel on a connection to the proxy. Raises `httpcore2.ConnectError` if the proxy refuses."""
        extra = "" if self.authorization is None else f"Proxy-Authorization: Basic {self.authorization}\r\n"
        request = f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{extra}\r\n"
        await stream.write(request.encode("ascii"), seconds)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = await stream.read(1, seconds)  # Bytes after the answer belong to the server.
            answer += piece
            if not piece or len(answer) > _MOST_ANSWER:
                raise httpcore2.ConnectError(f"the proxy `{self.host}` did not answer properly")
        status = answer.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        if len(status) < 2 or not status[1].startswith("2"):
            raise httpcore2.ConnectError(f"the proxy `{self.host}` refused: {' '.join(status[1:])}")


def proxy_for(env: Mapping[str, str], host: str, port: int) -> MachineProxy | None:
    """The proxy for a host and port; None for a direct connection."""
    variables = {name: env.get(name) or env.get(name.upper()) or "" for name in _VARIABLES}
    text = variables["http_proxy" if port == 80 else "https_proxy"] or variables["all_proxy"]
    excepted = [each.strip().lower() for each in variables["no_proxy"].split(",")]
    if not text or _is_direct(host) or any(_covers(each, host, port) for each in excepted):
        return None
    try:
        found = urlsplit(text if "://" in text else f"http://{text}")
        port_of_proxy = found.port or 80
    except ValueError:  # Its text would show the password.
        raise httpcore2.ConnectError("the address of this machine's proxy is not valid") from None
    if found.scheme != "http" or not found.hostname:
        raise httpcore2.ConnectError("this machine's proxy is of a kind that haft cannot use: only http:// works")
    user = None
    if found.username is not None:
        secret = f"{unquote(found.username)}:{unquote(found.password or '')}"
        user = base64.b64encode(secret.encode()).decode()
    return MachineProxy(found.hostname, port_of_proxy, user)


def _is_direct(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return True


def _covers(exception: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY covers a host: a name stands for all names below it too."""
    name, colon, number = exception.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        exception = name
    exception = exception if exception == "*" else exception.lstrip("*").lstrip(".")
    return exception == "*" or (bool(exception) and (host == exception or host.endswith(f".{exception}")))
