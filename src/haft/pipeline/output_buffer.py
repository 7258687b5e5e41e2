"""Masks the output of a run, passes the whole output to a store, and keeps its beginning and its end, which the outcome
shows.

Secrets are masked before output is stored, shown or cut, so that no secret and no part of a secret gets any further.
Memory use does not grow with the output. Invalid bytes are decoded with replacement characters; a character that is
split between two pieces is put together again.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from haft.contracts import MaskedStream, Secrets, Stream


class OutputStore(Protocol):
    """Stores the whole output (`runs.KeptOutput`)."""

    def append(self, seq: int, at: float, stream: Stream, data: bytes) -> None: ...

    def close(self) -> None: ...


class HeadAndTail:
    """The first and the last bytes of a stream, each up to half of `bound`."""

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
        """The number of bytes between head and tail that were dropped."""
        return max(0, self.total - self._head_room - self._tail_room)

    def text(self, run: str) -> str:
        """The head and the tail as text. If bytes between them were dropped, a line in their place says how many, and
        names the command that shows them."""
        tail = b"".join(self._tail)
        if not self.cut:
            return bytes(self._head + tail).decode("utf-8", "replace")
        # A character of which the cut leaves only a part is left out, not shown as a damaged one.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        end = tail[len(tail) - self._tail_room :] if self._tail_room else b""
        for _ in range(3):
            if end and end[0] & 0xC0 == 0x80:
                end = end[1:]
        shown = end.decode("utf-8", "replace")
        return f"{head}\n[… {self.cut:_} bytes not shown: haft output {run} …]\n{shown}"


class OutputBuffer:
    """The output of one run."""

    def __init__(
        self,
        bound: int,
        store: OutputStore,
        secrets: Secrets,
        also: Callable[[Stream, bytes], None] | None = None,
    ) -> None:
        """`also` gets the whole output too, as it comes and masked."""
        self._also = also
        self._secrets = secrets
        self._masked: dict[tuple[Stream, bool], MaskedStream] = {}
        """The maskers, by stream and by whether its text is shown in the output: each of these is masked separately."""
        self._is_over = False
        self.all = HeadAndTail(bound)
        self.stderr = HeadAndTail(bound)
        self._store = store
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {}

    def add(self, seq: int, at: float, stream: Stream, data: bytes, *, decode: bool) -> str:
        """Add a piece of output. With `decode`, return the text that can be shown now; an end of the piece that may be
        the start of a secret is kept back. Without `decode`, return an empty text."""
        return self._add(seq, at, stream, self._masked_part(data, stream, is_shown=True), decode=decode)

    def add_stderr_only(self, seq: int, at: float, data: bytes, stream: Stream) -> None:
        """Add a piece of output that the outcome shows in `stderr` only, and not in `output`."""
        self._add_stderr_only(seq, at, self._masked_part(data, stream, is_shown=False))

    def end(self, seq: int, at: float) -> Iterator[tuple[Stream, str]]:
        """Accept no more output. Add the bytes that were kept back because they could have been the start of a secret,
        and yield their text for each stream."""
        self._is_over = True
        for (stream, is_shown), masked in self._masked.items():
            if rest := masked.end():
                if is_shown:
                    yield stream, self._add(seq, at, stream, rest, decode=True)
                else:
                    self._add_stderr_only(seq, at, rest)

    def _masked_part(self, data: bytes, stream: Stream, *, is_shown: bool) -> bytes:
        """The masked bytes that can be shown now. Bytes at the end of `data` that may be the start of a secret are kept
        back."""
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
        self._store.append(seq, at, stream, data)
        if self._also is not None and data:
            self._also(stream, data)
        if not decode:
            return ""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(data)

    def _add_stderr_only(self, seq: int, at: float, data: bytes) -> None:
        self.stderr.add(data)
        self._store.append(seq, at, "stderr", data)

    def close(self) -> None:
        self._store.close()
