"""Checks that the first bytes of a connection are meant for the granted host: the server name of TLS, and the `Host` of
each plain HTTP/1 request.

A server that serves many names at one address would otherwise let a call reach all of them. Nothing inside TLS is read,
and nothing is changed: the bytes wait here until they are known to be allowed. Other protocols pass unchecked, except
on port 80, which takes HTTP/1 only. So HTTP/2 without TLS passes on other ports, with any host that it names.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

HANDSHAKE, CLIENT_HELLO, SERVER_NAME, ENCRYPTED_HELLO = 22, 1, 0, 0xFE0D
MAX_RECORD, MAX_RECORDS, MAX_HELLO, MAX_HEAD = 16640, 64, 1 << 17, 1 << 16
SLICE, MAX_NAME = 4096, 100
METHOD = re.compile(rb"[A-Z]{3,16} ")
LONGEST_METHOD = 17
HEAD = re.compile(rb"([A-Z]{3,16}) (\S+) HTTP/1\.[01]\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*)\r\n")
SWITCHED = re.compile(rb"HTTP/1\.[01] 101")
HTTP_LINE = re.compile(rb"http/\d", re.IGNORECASE)
SSL2_HELLO = re.compile(rb"[\x80-\xff].\x01(?:\x00\x02|\x03[\x00-\x04])", re.DOTALL)
"""The beginning of a ClientHello in the format of SSL 2, which names no server."""
HTTP2_LINE = b"PRI * HTTP/2.0\r\n"
CHECKED_PROTOCOL = re.compile(rb"\b(?:h2c?\b|http/|tls/)", re.IGNORECASE)
"""Protocols of an upgrade that name hosts anew."""


class Refused(Exception):
    """The bytes are not meant for the granted host, or cannot be checked."""


def read_client_hello(data: bytes) -> tuple[str | None, bool] | None:
    """The server name of a TLS ClientHello, and whether the hello also carries an encrypted one; None while the hello
    is incomplete."""
    hello = _joined_hello(data)
    if hello is None:
        return None
    try:
        at = 34
        at += 1 + hello[at]
        at += 2 + int.from_bytes(hello[at : at + 2], "big")
        at += 1 + hello[at]
        end, at = at + 2 + int.from_bytes(hello[at : at + 2], "big"), at + 2
        name, is_encrypted = None, False
        while at + 4 <= min(end, len(hello)):
            kind, length = struct.unpack_from(">HH", hello, at)
            value, at = hello[at + 4 : at + 4 + length], at + 4 + length
            if kind == SERVER_NAME:
                if name is not None or value[2] != 0 or int.from_bytes(value[3:5], "big") != len(value) - 5:
                    raise Refused("its TLS server name is malformed")
                name = value[5:].decode("ascii").lower().rstrip(".")
            is_encrypted |= kind == ENCRYPTED_HELLO
    except (IndexError, UnicodeDecodeError):
        raise Refused("its TLS ClientHello is malformed") from None
    return name, is_encrypted


def _joined_hello(data: bytes) -> bytes | None:
    """The body of the ClientHello, which may be split over several records; None while it is incomplete."""
    hello, at, records = b"", 0, 0
    while at < len(data) and not _is_complete(hello):
        records += 1
        if records > MAX_RECORDS:  # Each further byte reads all of them again.
            raise Refused("its TLS ClientHello is split over too many records")
        if data[at] != HANDSHAKE:
            raise Refused("it began TLS and went on with something else")
        if len(data) < at + 5:
            return None
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        if not 0 < length <= MAX_RECORD:
            raise Refused("its TLS record is malformed")
        hello += data[at + 5 : at + 5 + length]
        at += 5 + length
    if len(hello) >= 4 and int.from_bytes(hello[1:4], "big") > 0xFFFF:
        raise Refused("its TLS ClientHello is too long")
    if not _is_complete(hello):
        return None
    if hello[0] != CLIENT_HELLO:
        raise Refused("it began TLS without a ClientHello")
    return hello[4 : 4 + int.from_bytes(hello[1:4], "big")]


def _is_complete(hello: bytes) -> bool:
    return len(hello) >= 4 and len(hello) >= 4 + int.from_bytes(hello[1:4], "big")


class FirstBytes:
    """Keeps the bytes that a program sends until they are known to be meant for the granted host."""

    def __init__(self, name: str, port: int, is_granted: Callable[[str, int], bool]) -> None:
        self._name = name
        self._port = port
        self._is_granted = is_granted
        self.kept = b""
        self._line = b""
        """The beginning of the first line, which has passed already: a request line is known only by its end."""
        self._is_after_blank = False
        self._read: Callable[[], bytes | None] = self._first
        self._left = 0
        self._answer = b""
        self._requests = 0
        self._may_switch = False
        self.is_done = False
        """Whether all further bytes may pass."""
        self.awaits_answer = False
        """Whether the program asked to switch protocols: nothing passes until the server has answered."""
        self.is_encrypted = False
        """Whether TLS carries an encrypted server name besides the visible one."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the program, and return those that may pass. Raises `Refused`."""
        passed: list[bytes] = []
        # In slices: each chunk of a body copies what is kept, so a long rest would cost quadratic time.
        for start in range(0, len(data) or 1, SLICE):
            self.kept += data[start : start + SLICE]
            self._advance(passed)
        return b"".join(passed)

    def _advance(self, passed: list[bytes]) -> None:
        while self.kept and not self.awaits_answer:
            if self.is_done:
                passed.append(self.kept)
                self.kept = b""
                return
            part = self._read()
            if part is None:
                return
            passed.append(part)

    def feed_answer(self, data: bytes) -> bytes:
        """Take bytes of the server while `awaits_answer`; returns the bytes of the program that may pass now."""
        self._answer += data[: 13 - len(self._answer)]
        if len(self._answer) < 12:
            return b""
        # Only the first answer of a connection can be told apart from a body that looks like an answer.
        self.is_done = self._requests == 1 and SWITCHED.match(self._answer) is not None
        if self.is_done and not self._may_switch:
            raise Refused("it switched to a protocol that can name other hosts")
        self.awaits_answer = False
        self._read = self._request
        return self.feed(b"")

    def _check_name(self, host: str, what: str) -> None:
        host = host.lower().rstrip(".")
        if host != self._name and not self._is_granted(host, self._port):
            raise Refused(f"{what} {host[:MAX_NAME]!r} is not granted")

    def _first(self) -> bytes | None:
        """Find out which protocol the program speaks. Bytes of a first line pass before its end, because a program of
        another protocol may wait for an answer to them."""
        is_start = not self._line and not self._is_after_blank
        if is_start and SSL2_HELLO.match(self.kept):
            raise Refused("its TLS names no server, so nobody can tell which one is meant")
        if is_start and self.kept[0] == HANDSHAKE:
            self._read = self._hello
            return b""
        if self._port == 80:
            self._read = self._request
            return b""
        end = self.kept.find(b"\n") + 1
        line = self._line + (self.kept[:end] if end else self.kept)
        if end and HTTP_LINE.search(line) and (line != HTTP2_LINE or self._is_after_blank):
            if self._is_after_blank:
                raise Refused("its HTTP request is malformed")
            self._read = self._request
            return b""
        passed, self.kept = (self.kept[:end], self.kept[end:]) if end else (self.kept, b"")
        if not end:
            self._line = line[-MAX_HEAD - 1 :]
        elif line.strip():
            self.is_done = True
        else:
            self._line, self._is_after_blank = b"", True
        return passed

    def _hello(self) -> bytes | None:
        found = read_client_hello(self.kept)
        if found is None:
            if len(self.kept) > MAX_HELLO:
                raise Refused("its TLS ClientHello is too long")
            return None
        name, self.is_encrypted = found
        if name is None:
            raise Refused("its TLS names no server, so nobody can tell which one is meant")
        self._check_name(name, "the TLS server name")
        self.is_done = True
        return b""

    def _request(self) -> bytes | None:
        whole = self._line + self.kept
        end = whole.find(b"\r\n\r\n")
        head = whole if end < 0 else whole[: end + 4]
        if head.count(b"\n") != head.count(b"\r\n"):
            raise Refused("its HTTP request is malformed")
        if len(head) > MAX_HEAD:
            raise Refused("its HTTP request is too long")
        if end < 0:
            if not METHOD.match(head[:LONGEST_METHOD]) and len(head) >= LONGEST_METHOD:
                raise Refused(f"port {self._port} takes HTTP/1 requests only")
            return None
        found = HEAD.fullmatch(head)
        if found is None:
            raise Refused("its HTTP request is malformed")
        method, target, lines = found.groups()
        self._check_request(method, target, _headers(lines))
        passed = head[len(self._line) :]
        self.kept, self._line = self.kept[len(passed) :], b""
        self._requests += 1
        return passed

    def _check_request(self, method: bytes, target: bytes, headers: dict[bytes, list[bytes]]) -> None:
        """Check the hosts that a request names, and expect its body next."""
        hosts = headers.get(b"host", [])
        lengths, encodings = headers.get(b"content-length", []), headers.get(b"transfer-encoding", [])
        if len(hosts) > 1 or len(lengths) + len(encodings) > 1:
            raise Refused("its HTTP request contradicts itself")
        if method == b"CONNECT" or (target[:1] not in (b"/", b"*") and b"://" in target):
            hosts = [*hosts, target.partition(b"://")[2].partition(b"/")[0] or target]
        for host in hosts:
            self._check_name(re.sub(r":\d*$", "", host.decode("latin-1")), "the HTTP host")
        self._read = self._request
        if b"upgrade" in headers:
            if encodings or lengths not in ([], [b"0"]):
                raise Refused("its HTTP request has a body and asks for another protocol")
            self._may_switch = not any(CHECKED_PROTOCOL.search(each) for each in headers[b"upgrade"])
            self.awaits_answer, self._answer = True, b""
        elif encodings:
            if encodings != [b"chunked"]:
                raise Refused("its HTTP transfer encoding is not understood")
            self._read = self._chunk
        elif lengths:
            if not re.fullmatch(rb"\d{1,18}", lengths[0]):
                raise Refused("its HTTP content length is malformed")
            self._left, self._read = int(lengths[0]), self._body

    def _body(self) -> bytes:
        passed, self.kept = self.kept[: self._left], self.kept[self._left :]
        self._left -= len(passed)
        if not self._left:
            self._read = self._request
        return passed

    def _chunk(self) -> bytes | None:
        line, found, rest = self.kept.partition(b"\r\n")
        if not found and len(line) <= 64:
            return None
        if not re.fullmatch(rb"[0-9a-fA-F]{1,12}", line):
            raise Refused("its HTTP chunk is malformed")
        self._left, self.kept = int(line, 16) + 2, rest
        self._read = self._chunk_body if self._left > 2 else self._trailer
        return line + b"\r\n"

    def _chunk_body(self) -> bytes | None:
        """Pass a chunk, and the line end after it as a whole."""
        inside = max(0, self._left - 2)
        passed, self.kept = self.kept[:inside], self.kept[inside:]
        self._left -= len(passed)
        if self._left > 2 or not self.kept:
            return passed
        if not b"\r\n".startswith(self.kept[:2]):
            raise Refused("its HTTP chunk is malformed")
        if len(self.kept) < 2:
            return passed or None
        self.kept, self._read = self.kept[2:], self._chunk
        return passed + b"\r\n"

    def _trailer(self) -> bytes | None:
        if self.kept[:2] == b"\r\n":
            self.kept, self._read = self.kept[2:], self._request
            return b"\r\n"
        if len(self.kept) >= 2:
            raise Refused("its HTTP request has trailers")
        return None


def _headers(lines: bytes) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for line in lines.split(b"\r\n")[:-1]:
        key, _, value = line.partition(b":")
        found.setdefault(key.lower(), []).append(value.strip(b" \t"))
    return found
