"""Output on its way: masked, kept whole elsewhere, and of it the head and tail that an outcome shows.

Secrets are masked before anything is kept, shown or cut: nobody behind this sees one, or half of one. Memory is bounded
by what is shown, whatever the tool prints. Text is decoded with replacement, characters that are cut by the edge of a
piece put together again.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from haft.contracts import MaskedStream, Secrets, Stream


class Keeping(Protocol):
    """Where whole output goes (`runs.KeptOutput`)."""

    def append(self, seq: int, at: float, stream: Stream, data: bytes) -> None: ...

    def close(self) -> None: ...


class HeadAndTail:
    """The first and the last bytes of a stream, half of the bound each."""

    __slots__ = ("_head", "_head_room", "_tail", "_tail_room", "_tail_size", "total")

    def __init__(self, bound: int) -> None:
        self._head = bytearray()
        self._head_room = bound - bound // 2
        self._tail: deque[bytes] = deque()
        self._tail_room = bound // 2
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        if len(data) > self._tail_room:
            data = data[len(data) - self._tail_room :]
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    @property
    def cut(self) -> int:
        """Bytes between head and tail that are not here."""
        return max(0, self.total - self._head_room - self._tail_room)

    def text(self, handle: str) -> str:
        """What is shown, with a word about what is not and where to find it."""
        tail = b"".join(self._tail)
        if not self.cut:
            return bytes(self._head + tail).decode("utf-8", "replace")
        # Characters cut by our own edges are left out rather than shown as damaged.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        end = tail[len(tail) - self._tail_room :] if self._tail_room else b""
        for _ in range(3):
            if end and end[0] & 0xC0 == 0x80:
                end = end[1:]
        shown = end.decode("utf-8", "replace")
        return f"{head}\n[… {self.cut:_} bytes not shown: haft output {handle} …]\n{shown}"


class OutputBuffer:
    """Everything one run writes."""

    def __init__(self, bound: int, keeping: Keeping, secrets: Secrets) -> None:
        self._secrets = secrets
        self._masked: dict[tuple[Stream, bool], MaskedStream] = {}
        """By stream, and whether it is shown: each is a text of its own."""
        self._is_over = False
        self.all = HeadAndTail(bound)
        self.stderr = HeadAndTail(bound)
        self._keeping = keeping
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {}

    def add(self, seq: int, at: float, stream: Stream, data: bytes, *, decode: bool) -> str:
        """Take a piece; its text, as far as that is settled, where someone watches."""
        return self._add(seq, at, stream, self._settled(data, stream, is_shown=True), decode=decode)

    def add_aside(self, seq: int, at: float, data: bytes, stream: Stream) -> None:
        """Take a piece that is kept with stderr, and not shown with the rest."""
        self._add_aside(seq, at, self._settled(data, stream, is_shown=False))

    def end(self, seq: int, at: float) -> Iterator[tuple[Stream, str]]:
        """Nothing more is taken: what was held back, and its text where it is shown."""
        self._is_over = True
        for (stream, is_shown), masked in self._masked.items():
            if rest := masked.end():
                if is_shown:
                    yield stream, self._add(seq, at, stream, rest, decode=True)
                else:
                    self._add_aside(seq, at, rest)

    def _settled(self, data: bytes, stream: Stream, *, is_shown: bool) -> bytes:
        """What of it can be shown now: the rest may be the beginning of a secret."""
        if self._is_over:
            return b""
        if not self._secrets:
            return data
        masked = self._masked.get((stream, is_shown))
        if masked is None:
            masked = self._masked[stream, is_shown] = self._secrets.stream()
        return masked.feed(data)

    def _add(self, seq: int, at: float, stream: Stream, data: bytes, *, decode: bool) -> str:
        self.all.add(data)
        if stream == "stderr":
            self.stderr.add(data)
        self._keeping.append(seq, at, stream, data)
        if not decode:
            return ""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(data)

    def _add_aside(self, seq: int, at: float, data: bytes) -> None:
        self.stderr.add(data)
        self._keeping.append(seq, at, "stderr", data)

    def close(self) -> None:
        self._keeping.close()
