"""The network of one call: answers its look-ups, accepts its connections, and reports each of them to the host."""

from __future__ import annotations

import contextlib
import errno
import json
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from haft.helper.egress.grants import Grant
from haft.helper.egress.link import HALF_CLOSED, READ, Link, reset
from haft.helper.egress.loop import Loop
from haft.helper.egress.names import answer_query
from haft.helper.egress.proxy_request import ProxyRequest
from haft.helper.egress.upstream import Upstream
from haft.helper.local_network import OWN_ADDRESS

MAX_NAMES, MAX_LISTENERS, MAX_LINKS, MAX_REPORTED, MAX_REFUSED, MAX_HELD = 4096, 1024, 2048, 1000, 1000, 256
MAX_STREAMS = 64
MAX_REASON = 500
MAX_QUESTIONS = 30
"""How many hosts and ports a call can make haft ask about; it refuses further ones."""
MAX_CHECKED = 1 << 16
"""How many bytes of one call are checked in one step of the loop."""
MAX_TO_LOOK_UP = 256
REPORTED_AT_ONCE = 100
MAX_LOOK_UPS = 4
"""How many names of one call are looked up at the same time, so that no call blocks the look-ups of others."""
PROXY_PORT = 3128
HELD_PORTS = (22, 80, 443)
"""The ports on which connections to hosts that were not granted can wait, if the kernel has no packet rules."""
IP_PKTINFO, IPV6_PKTINFO, IPV6_FREEBIND = 8, 50, 78

Send = Callable[[dict[str, Any]], None]
Host = tuple[str, int]


class CallNetwork:
    """What one call may reach, and what it has open."""

    def __init__(
        self, loop: Loop, upstream: Upstream, channel: socket.socket, order: dict[str, Any], send: Send
    ) -> None:
        """`channel`: the socket to the init of the call's sandbox. `order`: the host's message about the call. `send`
        sends a message to the host."""
        self.loop = loop
        self.upstream = upstream
        self.number: int = order["call"]
        self._send = send
        self._channel = channel
        self._grants = [Grant(each) for each in order["grants"]]
        self._asks: bool = order["asks"]
        """Whether a person can be asked about hosts that were not granted."""
        self._names: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._resolved: dict[str, list[str]] = {}
        self._resolving: dict[str, list[Link]] = {}
        self._to_look_up: deque[str] = deque()
        self._look_ups = 0
        self._own: list[socket.socket] = []
        self._takers: dict[str, socket.socket] = {}
        self._listeners: dict[Host, socket.socket] = {}
        self._spare: list[socket.socket] = []
        self._spare6: list[socket.socket] = []
        self._streams: set[socket.socket] = set()
        self._requests: set[ProxyRequest] = set()
        self._links: set[Link] = set()
        self._held: dict[Host, list[tuple[socket.socket, bytes | None]]] = {}
        """By host and port, the connections that wait for a person's answer, each with the bytes after its proxy
        request, if it made one."""
        self._questions = 0
        self._rejected: set[Host] = set()
        self._refused: dict[tuple[str, int, str], int] = {}
        self._reported = self._omitted = 0
        self._sums: dict[tuple[Any, ...], dict[str, Any] | None] = {}
        """Sums of connections that are reported together at the end; None for those that were reported one by one."""
        self._is_paused = False
        self.checked = 0
        """How many bytes of this call were checked in the current step of the loop."""
        self.is_over = False
        loop.add(channel, READ, self._from_init)

    def may_check(self) -> bool:
        """Whether more bytes of this call are checked in this step of the loop, so that other calls have their turn."""
        return self.checked < MAX_CHECKED

    def is_granted(self, name: str, port: int) -> bool:
        return self._grant_for(name, port) is not None

    def _grant_for(self, name: str, port: int) -> Grant | None:
        return next((each for each in self._grants if each.covers(name, port)), None)

    # What the init and the host say

    def _from_init(self, channel: socket.socket, _events: int) -> None:
        """Take the sockets of the call's namespace, or notice that the call has ended."""
        try:
            message, descriptors, _, _ = socket.recv_fds(channel, 1 << 14, 253)
        except OSError:
            message, descriptors = b"", []
        ends = [socket.socket(fileno=each) for each in descriptors]
        for end in ends:
            end.setblocking(False)
            end.set_inheritable(False)
        if not message or self._own:
            for end in ends:
                end.close()
            self.end()
            return
        handlers = {
            "tap": self._from_tap, "dns": self._from_dns, "dns6": self._from_dns6, "dns-stream": self._from_dns_stream,
        }  # fmt: skip
        for role, end in zip(json.loads(message), ends, strict=True):
            if role in handlers:
                self._own.append(end)
                self.loop.add(end, READ, handlers[role])
            elif role in ("any-name", "any-address"):
                self._takers[role] = end
            else:
                (self._spare if role == "spare" else self._spare6).append(end)
        problem = self._listen_to_all()
        channel.send(json.dumps({"problem": problem}).encode())

    def _listen_to_all(self) -> str | None:
        """Listen where the grants say. Returns why that is not possible."""
        takes_names = self._asks or any(each.is_wild or not each.has_few_ports for each in self._grants)
        for role, wanted in (("any-name", takes_names), ("any-address", self._asks)):
            if wanted and role in self._takers:
                self._takers[role].listen(4096)
                self.loop.add(self._takers[role], READ, self._accept)
        if self._spare:
            self._listen(OWN_ADDRESS, PROXY_PORT)
        for grant in self._grants:
            if not (grant.has_few_ports or self._takers or len(self._spare) > sum(1 for _ in grant.ports())):
                return f"{grant.words}: this kernel has no packet rules (nf_tables with tproxy), so name a few ports"
            if grant.address is None and not grant.is_local:
                continue
            for port in grant.ports():
                for address in [str(grant.address)] if grant.address is not None else ["127.0.0.1", "::1"]:
                    try:
                        self._listen(address, port)
                    except OSError as error:
                        if address != "::1":
                            return f"{grant.words}: {error.strerror}"
        return None

    def _listen(self, address: str, port: int) -> None:
        spare = self._spare6 if ":" in address else self._spare
        if not spare:
            raise OSError(0, "too many ports")
        end = spare.pop()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in address:  # Unlike IPv4, a local route does not suffice to bind.
            end.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        end.bind((address, port))
        end.listen(4096)
        self._listeners[address, port] = end
        self.loop.add(end, READ, self._accept)

    def answer(self, host: Host, grant: dict[str, Any] | None) -> None:
        """A person has answered about a host and port; `grant` is None if the connections are refused. The answer holds
        for the rest of the call."""
        waiting = self._held.pop(host, [])
        if grant is None:
            self._rejected.add(host)
        else:
            self._grants.append(Grant(grant))
        for inner, early in waiting:
            self.loop.remove(inner)
            self._decide(inner, *host, early)

    # Look-ups

    def _address_of(self, name: str) -> str | None:
        """The made-up address of a name. If the name is granted, connections to this address are accepted."""
        found = self._names.get(name)
        if found is not None or len(self._names) >= MAX_NAMES:
            return found
        covering = [each for each in self._grants if each.address is None and each.covers(name)]
        is_any_port = self._takers and (self._asks or any(each.is_wild or not each.has_few_ports for each in covering))
        number = len(self._names) + 2
        address = f"198.{19 if is_any_port else 18}.{number >> 8}.{number & 255}"
        if not is_any_port:
            ports = {port for each in covering for port in each.ports()}
            if self._asks:
                ports |= set(HELD_PORTS)
            if len(ports) > len(self._spare) or len(self._listeners) > MAX_LISTENERS:
                return None
            for port in sorted(ports):
                with contextlib.suppress(OSError):  # A program of the call has taken the port itself.
                    self._listen(address, port)
        self._names[name] = address
        self._addresses[address] = name
        return address

    def _answer_query(self, query: bytes) -> bytes | None:
        return answer_query(query, self._address_of, self._addresses.get)

    def _from_dns(self, end: socket.socket, _events: int) -> None:
        for _ in range(64):
            try:
                query, extra, _flags, who = end.recvmsg(2048, 64)
            except OSError:
                return
            asked = next((data[8:12] for level, kind, data in extra if (level, kind) == (0, IP_PKTINFO)), None)
            words = self._answer_query(query)
            if words is not None and asked is not None:
                source = struct.pack("=i4s4s", 0, asked, b"\0" * 4)
                with contextlib.suppress(OSError):
                    end.sendmsg([words], [(socket.IPPROTO_IP, IP_PKTINFO, source)], 0, who)

    def _from_dns6(self, end: socket.socket, _events: int) -> None:
        with contextlib.suppress(OSError):
            query, extra, _flags, who = end.recvmsg(2048, 64)
            if (words := self._answer_query(query)) is not None:
                source = [each for each in extra if each[:2] == (socket.IPPROTO_IPV6, IPV6_PKTINFO)]
                end.sendmsg([words], source, 0, who)

    def _from_dns_stream(self, end: socket.socket, _events: int) -> None:
        with contextlib.suppress(OSError):
            one, _ = end.accept()
            one.setblocking(False)
            if len(self._streams) < MAX_STREAMS:
                self._streams.add(one)
                self.loop.add(one, READ, self._from_one_stream)
            else:
                one.close()

    def _from_one_stream(self, one: socket.socket, _events: int) -> None:
        """Answer one look-up over TCP, which is small enough to arrive at once."""
        self.loop.remove(one)
        self._streams.discard(one)
        with contextlib.suppress(OSError), one:
            if (words := self._answer_query(one.recv(2048)[2:])) is not None:
                one.send(struct.pack(">H", len(words)) + words)

    # Connections

    def _accept(self, end: socket.socket, _events: int) -> None:
        for _ in range(32):
            if len(self._links) + len(self._requests) >= MAX_LINKS or self.loop.is_crowded:
                return self._pause()
            try:
                inner, _ = end.accept()
                address, port = inner.getsockname()[:2]
            except OSError as error:
                return self._pause() if error.errno in (errno.EMFILE, errno.ENFILE) else None
            inner.setblocking(False)
            if (address, port) == (OWN_ADDRESS, PROXY_PORT):
                self._requests.add(ProxyRequest(self, inner))
                continue
            self._decide(inner, self._name_of(address, port), port, None)
        return None

    def _name_of(self, address: str, port: int) -> str:
        """The name under which the call knows an address. On the call's own loopback, a listener is there because
        `localhost` or the address itself is granted."""
        name = self._addresses.get(address, address)
        is_local = address in ("127.0.0.1", "::1") and not self.is_granted(name, port)
        return "localhost" if is_local else name

    def _decide(self, inner: socket.socket, name: str, port: int, early: bytes | None) -> None:
        """Connect, hold or refuse."""
        grant = self._grant_for(name, port)
        if grant is not None:
            link = Link(self, inner, name, port, grant, early)
            self._links.add(link)
            link.begin()
        elif self._may_hold(name, port):
            self._hold(inner, name, port, early)
        else:
            self._refuse(inner, name, port, early)

    def _may_hold(self, name: str, port: int) -> bool:
        if not self._asks or (name, port) in self._rejected or sum(map(len, self._held.values())) >= MAX_HELD:
            return False
        return (name, port) in self._held or self._questions < MAX_QUESTIONS

    def _hold(self, inner: socket.socket, name: str, port: int, early: bytes | None) -> None:
        is_first = (name, port) not in self._held
        self._held.setdefault((name, port), []).append((inner, early))
        self.loop.add(inner, HALF_CLOSED, self._given_up)
        if is_first:
            self._questions += 1
            with contextlib.suppress(OSError):
                address, client_port = inner.getpeername()[:2]
                self._tell("held", name, port, client=[address, client_port])

    def _given_up(self, inner: socket.socket, events: int) -> None:
        """Drop a held connection that the program has closed. A program that has sent its request may close its own
        direction and still wait for the answer."""
        self.loop.remove(inner)
        with contextlib.suppress(OSError):
            if not events & (select.EPOLLHUP | select.EPOLLERR) and inner.recv(1, socket.MSG_PEEK):
                return
        inner.close()
        for host, waiting in list(self._held.items()):
            self._held[host] = [each for each in waiting if each[0] is not inner]
            if not self._held[host]:
                del self._held[host]
                self._tell("given-up", *host)

    def _refuse(self, inner: socket.socket, name: str, port: int, early: bytes | None) -> None:
        self._count_refused(name, port, "tcp")
        if early is not None:
            with contextlib.suppress(OSError):
                text = f"{name}:{port} is not granted\n"
                head = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
                inner.send((head + text).encode())
            inner.close()
        else:
            reset(inner)

    def request_is_read(self, request: ProxyRequest, host: Host | None, rest: bytes) -> None:
        """A program has named the host that it wants to reach through the proxy; None if it named none."""
        self._requests.discard(request)
        if host is not None:
            self._decide(request.inner, *host, rest)
        self._resume()

    def _pause(self) -> None:
        self._is_paused = True
        for end in self._accepting():
            self.loop.change(end, 0)

    def _resume(self) -> None:
        is_free = len(self._links) < MAX_LINKS * 3 // 4 and not self.loop.is_crowded
        if self._is_paused and is_free and not self.is_over:
            self._is_paused = False
            for end in self._accepting():
                self.loop.change(end, READ)

    def _accepting(self) -> list[socket.socket]:
        takes_names = self._asks or any(each.is_wild or not each.has_few_ports for each in self._grants)
        wanted = {"any-name": takes_names, "any-address": self._asks}
        return [*self._listeners.values(), *(end for role, end in self._takers.items() if wanted[role])]

    def resolve(self, link: Link, name: str) -> None:
        """Look a name up with the resolver of this machine, once for a call."""
        if (known := self._resolved.get(name)) is not None:
            return link.resolved(known, None)
        waiting = self._resolving.setdefault(name, [])
        waiting.append(link)
        if len(waiting) == 1:
            if len(self._to_look_up) >= MAX_TO_LOOK_UP:
                del self._resolving[name]
                return link.resolved([], "too many names are looked up at the same time")
            self._to_look_up.append(name)
            self._look_up_next()
        return None

    def _look_up_next(self) -> None:
        name = None
        while self._to_look_up and name is None and self._look_ups < MAX_LOOK_UPS and not self.is_over:
            name = self._to_look_up.popleft()
            if all(link.is_over for link in self._resolving[name]):
                del self._resolving[name]  # Nobody waits for it any more.
                name = None
        if name is None:
            return
        wanted = name
        self._look_ups += 1

        def look_up() -> Callable[[], None]:
            if self.is_over:
                return lambda: None
            try:
                found = [str(each[4][0]) for each in socket.getaddrinfo(wanted, None, type=socket.SOCK_STREAM)]
                problem = None
            except (OSError, UnicodeError) as error:
                found, problem = [], getattr(error, "strerror", None) or str(error)

            def done() -> None:
                self._look_ups -= 1
                self._look_up_next()
                if problem is None:
                    self._resolved[wanted] = found
                for each in self._resolving.pop(wanted, []):
                    each.resolved(found, problem)

            return done

        self.loop.run_in_thread(look_up)

    def expire(self, now: float) -> bool:
        """Let the deadlines of connections pass. Returns whether any is left."""
        for link in [each for each in self._links if each.may_expire and now > each.deadline]:
            link.expire()
        for request in [each for each in self._requests if now > each.deadline]:
            request.close()
        self._resume()
        return self._is_paused or bool(self._requests) or any(each.may_expire for each in self._links)

    # Reports

    def _from_tap(self, end: socket.socket, _events: int) -> None:
        """Count the connections and datagrams that the kernel has refused."""
        for _ in range(256):
            try:
                packet = end.recv(128)
            except OSError:
                return
            with contextlib.suppress(struct.error, IndexError, ValueError):
                if packet[0] >> 4 == 4:
                    at, address, is_udp = 4 * (packet[0] & 15), socket.inet_ntoa(packet[16:20]), packet[9] == 17
                else:
                    at, address, is_udp = 40, socket.inet_ntop(socket.AF_INET6, packet[24:40]), False
                port = struct.unpack_from(">H", packet, at + 2)[0]
                if address in ("::1", OWN_ADDRESS) or (not is_udp and self._accepts(address, port)):
                    continue
                self._count_refused(self._addresses.get(address, address), port, "udp" if is_udp else "tcp")

    def _accepts(self, address: str, port: int) -> bool:
        if (address, port) in self._listeners or port == 53:
            return True
        if address.startswith("198.19."):
            return bool(self._takers)
        return bool(self._takers) and self._asks and ":" not in address and not address.startswith("198.18.")

    def _count_refused(self, name: str, port: int, protocol: str) -> None:
        key = name, port, protocol
        if key in self._refused or len(self._refused) < MAX_REFUSED:
            self._refused[key] = self._refused.get(key, 0) + 1
            if self._refused[key] == 1:
                self._tell("refused", name, port, protocol=protocol, reason="it is not granted")

    def _tell(self, event: str, name: str, port: int, **facts: Any) -> None:
        self._send({"call": self.number, "event": event, "host": name, "port": port, **facts})

    def opened(self, link: Link) -> None:
        if self._reported < MAX_REPORTED:
            self._tell("opened", link.name, link.port, address=link.address, grant=link.grant.words)

    def denied(self, link: Link, reason: str, *, is_refused: bool) -> None:
        event = "refused" if is_refused else "failed"
        self._report(event, link, protocol="tcp", reason=reason[:MAX_REASON])

    def ended(self, link: Link, how: str | None) -> None:
        self._links.discard(link)
        if how is not None:
            self._report("closed", link, how=how)
        self._resume()

    def _report(self, event: str, link: Link, **more: Any) -> None:
        """Report a connection. After very many reports, connections to the same host are only counted, and reported
        together at the end."""
        key = (event, link.name, link.port, link.grant.words, *more.values())
        is_new = key not in self._sums
        self._reported += 1
        if self._reported <= MAX_REPORTED or (is_new and len(self._sums) < 2 * MAX_REPORTED):
            self._tell(event, link.name, link.port, **more, **_facts(link))
            self._sums.setdefault(key, None)
        elif is_new:
            self._omitted += 1
        else:
            sums = self._sums[key] or {"event": event, "host": link.name, "port": link.port, **more, **_facts(link)}
            before = sums.get("count", 0)
            for name in ("sent", "received", "seconds"):
                sums[name] = getattr(link, name) + (sums[name] if before else 0)
            self._sums[key] = {**sums, "count": before + 1}

    def _report_sums(self) -> None:
        for key, sums in self._sums.items():
            if sums is not None:
                self._send({"call": self.number, **sums})
                self._sums[key] = None

    def report_open(self) -> None:
        """Report the connections that are open, and that all reports until now were sent."""
        self._report_sums()
        self._reported = 0
        for link in self._links:
            if link.is_copying:
                self._report("closed", link, how="it is still open")
                link.sent = link.received = 0
        self._report_sums()
        self._reported = 0
        self._sums.clear()
        self._send({"call": self.number, "event": "reported"})

    def end(self) -> None:
        """End everything that the call has open, because the call is over."""
        if self.is_over:
            return
        self.is_over = True
        for link in list(self._links):
            link.finish("the call ended", abort=True)
        for request in list(self._requests):
            request.close()
        held = [inner for waiting in self._held.values() for inner, _early in waiting]
        mine = [*self._own, *self._takers.values(), *self._listeners.values(), self._channel, *self._streams, *held]
        for end in mine:
            self.loop.remove(end)
        self.loop.close_later([*mine, *self._spare, *self._spare6])
        self._resolving.clear()
        self._to_look_up.clear()
        self._report_sums()
        counts = [[name, port, protocol, count] for (name, port, protocol), count in self._refused.items() if count > 1]
        for start in range(0, len(counts), REPORTED_AT_ONCE):
            repeated = counts[start : start + REPORTED_AT_ONCE]
            self._send({"call": self.number, "event": "repeated", "refused": repeated})
        self._send({"call": self.number, "event": "over", "omitted": self._omitted})


def _facts(link: Link) -> dict[str, Any]:
    return {
        "address": link.address,
        "sent": link.sent,
        "received": link.received,
        "seconds": round(link.seconds, 3),
        "grant": link.grant.words,
        "encrypted": link.is_encrypted,
    }
