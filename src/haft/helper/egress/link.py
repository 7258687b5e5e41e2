"""One connection of a call: looks up the real name, connects, and copies in both directions.

`inner` is the socket in the call's namespace, `outer` the real one. A link reads from one side only while the other
side takes bytes, so a slow reader costs no memory. If one side ends its stream, the link passes that on, and the other
direction goes on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Literal

from haft.helper.egress.first_bytes import METHOD, FirstBytes, Refused
from haft.helper.egress.grants import Grant
from haft.helper.egress.upstream import CONNECT_ANSWER_BYTES, Proxy

if TYPE_CHECKING:
    from haft.helper.egress.call import CallNetwork

READ, WRITE, HALF_CLOSED = select.EPOLLIN, select.EPOLLOUT, select.EPOLLRDHUP
PIECE = 1 << 18
CHECKED_PIECE = 1 << 14
"""How many bytes are read at once while they must be checked."""
MAX_KEPT = 1 << 16
CONNECT_SECONDS = 10.0
RESOLVE_SECONDS = 30.0
LAST_WORDS_SECONDS = 2.0
TLS_ACCESS_DENIED = b"\x15\x03\x03\x00\x02\x02\x31"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"

Direction = Literal["open", "ending", "ended"]
State = Literal["resolving", "connecting", "tunnelling", "copying", "denying", "over"]
_buffer = bytearray(PIECE)
_view = memoryview(_buffer)


def reset(end: socket.socket) -> None:
    """Close a socket so that the program sees a reset."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


class Link:
    """A connection that a grant covers."""

    def __init__(
        self, call: CallNetwork, inner: socket.socket, name: str, port: int, grant: Grant, early: bytes | None = None
    ) -> None:
        """`early`: set if the program asked for this connection as from a proxy; the bytes that it sent after its
        request."""
        self._call = call
        self._loop = call.loop
        self._inner = inner
        self._outer: socket.socket | None = None
        self.name = name
        self.port = port
        self.grant = grant
        self.address: str | None = None
        """The real address."""
        self._began = time.monotonic()
        self.deadline = self._began + RESOLVE_SECONDS
        self.sent = self.received = 0
        self._up = self._down = b""
        """Bytes of one side that the other side does not take yet."""
        self._up_state: Direction = "open"
        self._down_state: Direction = "open"
        self._masks: dict[socket.socket, int] = {}
        self._candidates: list[tuple[socket.AddressFamily, tuple[str, int]]] = []
        self._proxy: Proxy | None = None
        self._state: State = "resolving"
        self._status = ""
        self._reason = ""
        self._is_via_proxy = early is not None
        self._early = early or b""
        self._first = None if grant.address is not None or grant.is_local else FirstBytes(name, port, call.is_granted)
        self.is_encrypted = False
        """Whether the TLS server name is encrypted."""
        inner.setblocking(False)
        with contextlib.suppress(OSError):
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait_for(inner, 0)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def begin(self) -> None:
        """Find out where to connect to."""
        try:
            direct = self.grant.address is not None or self.grant.is_local
            self._proxy = None if direct else self._call.upstream.proxy_for(self.name, self.port)
        except ValueError as error:
            return self._deny("502", str(error))
        if self.grant.address is not None:
            return self.resolved([str(self.grant.address)], None)
        if self._proxy is not None:
            return self._call.resolve(self, self._proxy.host)
        return self._call.resolve(self, self.name)

    def resolved(self, addresses: list[str], problem: str | None) -> None:
        """Connect to the first address that the grant leads to."""
        if self._state != "resolving":
            return None
        if problem is not None:
            return self._deny("502", f"cannot be reached: {problem}")
        barred = ""
        port = self.port if self._proxy is None else self._proxy.port
        for address in addresses:
            # The proxy of this machine decides about addresses itself.
            why = None if self._proxy is not None else self.grant.problem_of(address)
            if why is None:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                self._candidates.append((family, (address, port)))
            else:
                barred = f"leads to {address}, which {why}; grant {self.name}:{self.port}={address} if you mean it"
        if not self._candidates:
            return self._deny("403", barred or "cannot be reached: it has no address")
        self._connect()
        return None

    def _connect(self) -> None:
        family, where = self._candidates.pop(0)
        self.address = where[0]
        self.deadline = time.monotonic() + CONNECT_SECONDS
        try:
            end = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            return self._connect_failed(error.errno or 0)
        self._outer = end
        self._state = "connecting"
        try:
            end.connect(where)
        except BlockingIOError:
            pass
        except OSError as error:
            return self._connect_failed(error.errno or 0)
        self._wait_for(end, WRITE)
        return None

    def _connect_failed(self, number: int) -> None:
        if self._outer is not None:
            self._drop(self._outer)
            self._outer = None
        if self._candidates:
            self._connect()
        else:
            self._deny("502", f"cannot be reached: {os.strerror(number)} ({self.address})")

    def expire(self) -> None:
        """Act on the passed deadline: of connecting, or of the last words to a program."""
        if self._state == "resolving":
            self._deny("502", "cannot be reached: its name could not be looked up in time")
        elif self._state == "connecting":
            self._connect_failed(errno.ETIMEDOUT)
        elif self._state == "tunnelling":
            self._deny("502", "cannot be reached: the proxy of this machine did not answer")
        elif self._state == "denying":
            self.finish(None, abort=True)

    @property
    def may_expire(self) -> bool:
        return self._state in ("resolving", "connecting", "tunnelling", "denying")

    @property
    def is_over(self) -> bool:
        return self._state == "over"

    @property
    def is_copying(self) -> bool:
        return self._state == "copying"

    def _wait_for(self, end: socket.socket, mask: int) -> None:
        before = self._masks.get(end)
        if self._state == "copying" and not mask:
            # A socket that was reset is always ready: until its last bytes have gone, the loop would never rest.
            self._masks.pop(end, None)
            self._loop.remove(end)
            return
        if before is None:
            self._loop.add(end, mask, self._ready)
        elif before != mask:
            self._loop.change(end, mask)
        self._masks[end] = mask

    def _ready(self, end: socket.socket, events: int) -> None:
        try:
            if self._state == "denying":
                self._hear_last()
            elif end is self._inner and self._state in ("resolving", "connecting", "tunnelling"):
                self.finish("the program gave up", abort=True)
            elif self._state == "connecting":
                self._connected()
            elif self._state == "tunnelling":
                self._read_proxy()
            elif self._state == "copying":
                if end is self._inner:
                    self._from_inner(events)
                else:
                    self._from_outer(events)
                if self._state == "copying":
                    self._settle()
        except Refused as refusal:
            self._deny("403", f"was refused: {refusal}")
        except OSError as error:
            gone = error.errno in (errno.EPIPE, errno.ECONNRESET)
            how = "reset" if gone else os.strerror(error.errno or 0)
            self.finish(None if self._state == "denying" else how, abort=True)

    def _connected(self) -> None:
        assert self._outer is not None
        number = self._outer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            return self._connect_failed(number)
        self._outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._proxy is not None:
            self._state = "tunnelling"
            self.deadline = time.monotonic() + CONNECT_SECONDS
            self._outer.send(self._proxy.request(self.name, self.port))
            return self._wait_for(self._outer, READ)
        return self._begin_copying()

    def _read_proxy(self) -> None:
        """Read the answer of this machine's proxy."""
        assert self._outer is not None
        data = self._outer.recv(CONNECT_ANSWER_BYTES)
        self._down += data
        head, found, rest = self._down.partition(b"\r\n\r\n")
        if not found:
            if not data or len(self._down) > CONNECT_ANSWER_BYTES:
                self._deny("502", "cannot be reached: the proxy of this machine gave no answer")
            return
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        if len(words) < 2 or not words[1].startswith("2"):
            self._deny("502", f"cannot be reached: the proxy of this machine answered {' '.join(words[1:])[:100]}")
            return
        self._down = rest
        self.received += len(rest)
        self._begin_copying()

    def _begin_copying(self) -> None:
        self._state = "copying"
        self._call.opened(self)
        if self._is_via_proxy:
            self._down = ESTABLISHED + self._down
        if self._early:
            early, self._early = self._early, b""
            self._take_up(early)
        self._settle()

    def _take_up(self, data: bytes | memoryview) -> None:
        """Pass bytes of the program on, as far as they are known to be allowed."""
        if self._first is None:
            return self._send_up(data)
        self._send_up(self._first.feed(bytes(data)))
        if self._first.is_done and not self._first.kept:
            self.is_encrypted, self._first = self._first.is_encrypted, None
        return None

    def _from_inner(self, events: int) -> None:
        if events & WRITE and self._down:
            self._down = self._down[self._inner.send(self._down) :]
        if not self._up and self._up_state == "open" and events & ~WRITE:
            if self._first is not None and not self._call.may_check():
                return
            count = self._inner.recv_into(_buffer, PIECE if self._first is None else CHECKED_PIECE)
            if self._first is not None:
                self._call.checked += count
            if not count:
                self._up_state = "ending"
            else:
                self._take_up(_view[:count])

    def _send_up(self, data: bytes | memoryview) -> None:
        if not len(data):
            return
        assert self._outer is not None
        try:
            count = self._outer.send(data)
        except BlockingIOError:
            count = 0
        self.sent += len(data)
        if count < len(data):
            self._up += bytes(data[count:])

    def _from_outer(self, events: int) -> None:
        assert self._outer is not None
        if events & WRITE and self._up:
            self._up = self._up[self._outer.send(self._up) :]
        if self._down or self._down_state != "open" or not events & ~WRITE:
            return
        count = self._outer.recv_into(_buffer, PIECE)
        if not count:
            self._down_state = "ending"
            return
        self.received += count
        start = bytes(_view[: min(count, 16)])
        try:
            done = self._inner.send(_view[:count])
        except BlockingIOError:
            done = 0
        if done < count:
            self._down = bytes(_view[done:count])
        if self._first is not None and self._first.awaits_answer:
            self._send_up(self._first.feed_answer(start))
            if self._first.is_done and not self._first.kept:
                self._first = None

    def _settle(self) -> None:
        """Wait for what is possible now. An end of one side is passed on when all bytes before it have gone."""
        assert self._outer is not None
        if self._up_state == "ending" and not self._up:
            self._up_state = "ended"
            with contextlib.suppress(OSError):
                self._outer.shutdown(socket.SHUT_WR)
        if self._down_state == "ending" and not self._down:
            self._down_state = "ended"
            with contextlib.suppress(OSError):
                self._inner.shutdown(socket.SHUT_WR)
        if self._up_state == self._down_state == "ended":
            return self.finish("closed")
        must_wait = self._first is not None and (self._first.awaits_answer or len(self._first.kept) > MAX_KEPT)
        if must_wait and self._down_state == "ended":  # The answer will never come.
            return self.finish("closed", abort=True)
        takes_up = not self._up and self._up_state == "open" and not must_wait
        takes_down = not self._down and self._down_state == "open"
        self._wait_for(self._inner, (READ if takes_up else 0) | (WRITE if self._down else 0))
        self._wait_for(self._outer, (READ if takes_down else 0) | (WRITE if self._up else 0))
        return None

    def _deny(self, status: str, reason: str) -> None:
        """End the connection with an error that the program can show: an HTTP answer, a TLS alert, or a reset."""
        # A program that asked as from a proxy is answered as by a proxy, unless its tunnel is open already.
        awaits_tunnel = self._is_via_proxy and (self._state != "copying" or bool(self._down))
        self._status, self._reason = status, reason
        is_refused = status == "403"
        self._call.denied(self, reason, is_refused=is_refused)
        if self._outer is not None:
            self._drop(self._outer)
            self._outer = None
        self._state = "denying"
        self.deadline = time.monotonic() + LAST_WORDS_SECONDS
        heard = self._early or (b"" if self._first is None else self._first.kept)
        if awaits_tunnel and not self.received and not self.sent:
            self._answer_http()
        elif heard:
            self._answer(heard)
        else:
            self._wait_for(self._inner, READ | HALF_CLOSED)

    def _hear_last(self) -> None:
        heard = self._inner.recv(PIECE)
        if not heard:
            self.finish(None)
        elif self._status:
            self._answer(heard)

    def _answer(self, heard: bytes) -> None:
        """Answer in the protocol that the program speaks. If the server has answered already, only reset."""
        if self.received:
            return self.finish(None, abort=True)
        if heard[:1] == b"\x16" and self._status == "403":
            return self._say(TLS_ACCESS_DENIED)
        return self._answer_http() if METHOD.match(heard[:17]) else self.finish(None, abort=True)

    def _answer_http(self) -> None:
        text = f"{self.name}:{self.port} {self._reason}\n".encode()
        head = (
            f"HTTP/1.1 {self._status} {'Forbidden' if self._status == '403' else 'Bad Gateway'}\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        self._say(head.encode() + text)

    def _say(self, words: bytes) -> None:
        self._status = ""
        try:
            self._inner.send(words)
            self._inner.shutdown(socket.SHUT_WR)
        except OSError:
            return self.finish(None, abort=True)
        return self._wait_for(self._inner, READ | HALF_CLOSED)

    def _drop(self, end: socket.socket) -> None:
        self._masks.pop(end, None)
        self._loop.remove(end)
        end.close()

    def finish(self, how: str | None, *, abort: bool = False) -> None:
        """Close both sides. `how` says how the connection ended; None if that was reported already."""
        if self._state == "over":
            return
        self._state = "over"
        for end in (self._inner, self._outer):
            if end is not None:
                if abort:
                    with contextlib.suppress(OSError):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._drop(end)
        self._call.ended(self, how)
