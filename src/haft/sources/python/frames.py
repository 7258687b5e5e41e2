"""The messages that a worker process sends to its host, on the same pipe as the function's prints.

A message is cut into pieces. Each piece is a random marker, a kind, a length and that many bytes. A piece is written in
one step, so no other writer can put bytes into the middle of it. In the worker `FrameWriter` writes the pieces; in the
host `FrameReader` separates them from ordinary output. The marker separates prints from messages; it does not prevent a
function from lying about its own result.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any, Final

PART: Final = b"+"
"""The kind of a piece after which more pieces of the message follow."""
END: Final = b"."
"""The kind of the last piece of a message."""
STDERR: Final = b"e"
"""The kind of a piece with bytes for stderr. They come on this pipe to stay in order with messages and prints."""

_HEADER: Final = 3


def new_marker() -> bytes:
    """A marker for one call. It begins with a byte that text does not contain, so `FrameReader` rarely delays
    prints."""
    return b"\x1e" + os.urandom(16)


class FrameReader:
    """Separates pieces from ordinary output, however the bytes are split between reads.

    It delays only bytes that may be the beginning of a piece, until the next bytes or the end of the input show what
    they are."""

    __slots__ = ("_held", "_marker", "_output", "_piece")

    def __init__(self, marker: bytes, output: Callable[[bytes], None], piece: Callable[[bytes, bytes], None]) -> None:
        self._marker = marker
        self._output = output
        self._piece = piece
        self._held = b""

    def feed(self, data: bytes) -> None:
        buffer, self._held = self._held + data, b""
        at = 0
        while (start := buffer.find(self._marker, at)) >= 0:
            self._let_out(buffer[at:start])
            header = start + len(self._marker)
            body = header + _HEADER
            end = body + int.from_bytes(buffer[header + 1 : body], "big")
            if len(buffer) < body or len(buffer) < end:
                self._held = buffer[start:]
                return
            self._piece(buffer[header : header + 1], buffer[body:end])
            at = end
        until = len(buffer) - self._begun(buffer, at)
        self._let_out(buffer[at:until])
        self._held = buffer[until:]

    def close(self) -> None:
        """Handle the end of the input: delayed bytes are output, unless they are an incomplete piece."""
        held, self._held = self._held, b""
        if not held.startswith(self._marker):
            self._let_out(held)

    def _begun(self, buffer: bytes, at: int) -> int:
        """How many bytes at the end of `buffer[at:]` may be the beginning of a marker."""
        for length in range(min(len(self._marker) - 1, len(buffer) - at), 0, -1):
            if buffer.endswith(self._marker[:length]):
                return length
        return 0

    def _let_out(self, data: bytes) -> None:
        if data:
            self._output(data)


class FrameWriter:
    """Writes messages. Can be used from any thread."""

    def __init__(self, marker: bytes, descriptor: int) -> None:
        import select

        self._marker = marker
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._most = min(select.PIPE_BUF, 4096) - len(marker) - _HEADER

    def message(self, value: Any) -> None:
        """Write `value` as a message, in JSON."""
        self._say(json.dumps(value, separators=(",", ":")).encode("ascii"), PART, END)

    def stderr(self, data: bytes) -> None:
        """Write bytes that the host must pass on as output on stderr."""
        if data:
            self._say(data, STDERR, STDERR)

    def _say(self, data: bytes, part: bytes, last: bytes) -> None:
        with self._lock:
            for start in range(0, len(data), self._most):
                piece = data[start : start + self._most]
                kind = last if start + self._most >= len(data) else part
                write_all(self._descriptor, self._marker + kind + len(piece).to_bytes(2, "big") + piece)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes, even if another user of the pipe made the pipe non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            import select

            select.select([], [descriptor], [])
