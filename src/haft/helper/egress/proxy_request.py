"""Reads the request of a program that insists on a proxy (CONNECT). The same checks apply as to any connection."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import time
from typing import TYPE_CHECKING

from haft.helper.egress.link import READ
from haft.helper.egress.names import is_name

if TYPE_CHECKING:
    from haft.helper.egress.call import CallNetwork

MAX_REQUEST = 1 << 14
REQUEST_SECONDS = 10.0
CONNECT = re.compile(rb"CONNECT (?:\[([0-9a-fA-F:.]+)\]|([^\s:\[\]]+)):(\d{1,5}) HTTP/1\.[01]\r\n")
ONLY_CONNECT = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def _normal(text: str) -> str | None:
    """The name or address as haft writes it; None if it is neither."""
    if is_name(text):
        return text
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


class ProxyRequest:
    """A connection to the proxy of a call whose request is not complete yet."""

    def __init__(self, call: CallNetwork, inner: socket.socket) -> None:
        self.inner = inner
        self.deadline = time.monotonic() + REQUEST_SECONDS
        self._call = call
        self._data = b""
        call.loop.add(inner, READ, self._ready)

    def _ready(self, inner: socket.socket, _events: int) -> None:
        try:
            data = inner.recv(MAX_REQUEST)
        except OSError:
            data = b""
        self._data += data
        if not data or len(self._data) > MAX_REQUEST:
            return self.close()
        head, found, rest = self._data.partition(b"\r\n\r\n")
        if not found:
            return None
        request = CONNECT.match(head + b"\r\n")
        host = None
        if request is not None:
            six, name, port = request.groups()
            text = _normal((six or name).decode("latin-1").lower().rstrip("."))
            host = None if text is None else (text, int(port))
        if host is None or host[1] > 65535:
            with contextlib.suppress(OSError):
                inner.send(ONLY_CONNECT)
            return self.close()
        self._call.loop.remove(inner)
        return self._call.request_is_read(self, host, rest)

    def close(self) -> None:
        self._call.loop.remove(self.inner)
        self.inner.close()
        self._call.request_is_read(self, None, b"")
