"""Stores the whole output of a run on disk, up to a limit.

The files of a run contain frames of (number, time, stream, bytes). The first file has the head of the output, up to
half the limit. The rest goes through a ring of smaller files, of which the last two stay. So head and tail are always
available, and the size of the gap between them is known. Another process can read meanwhile; it ignores an incomplete
frame at the end.

Beside a large file there is a file of marks (position, bytes, lines), one for each megabyte, so that a reader of some
lines can start near them. Marks are optional: without them, reading starts at the beginning.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

from haft.contracts import RunId, StorageFailed, Stream
from haft.values import dataclass

_FRAME = struct.Struct(">IdBI")
_START = struct.Struct(">8sQ")
_MARK = struct.Struct(">QQQ")
"""A position in the file, and how many bytes and line ends of the output this file has before that position."""
_MARK_EVERY = 1 << 20
_MAGIC = b"haftout1"
_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


def _base(outputs: str, run: RunId) -> str:
    # Grouped by the part of the name that encodes the time, so that no directory grows forever.
    return os.path.join(outputs, run[2:8], run)


@dataclass(frozen=True, slots=True)
class Frame:
    """A piece of output."""

    seq: int
    at: float
    stream: Stream
    data: bytes
    skipped: int = 0
    """The number of bytes before this piece that were dropped."""
    line: int = 1
    """The number of the line in which the piece begins, counting only stored lines."""


class KeptOutput:
    """Writes the output of one run. The first piece opens the file."""

    def __init__(self, outputs: str, run: RunId, bound: int) -> None:
        self._base = _base(outputs, run)
        self._head_room = max(1, bound // 2)
        self._ring_room = max(1, bound // 4)
        self._descriptor = -1
        self._number = 0
        self._room = 0
        self._marks = _Marks()
        self.total = 0
        self.failure: StorageFailed | None = None

    def append(self, seq: int, at: float, stream: Stream, data: bytes) -> None:
        """Store a piece. If the disk is full, storing ends, but the run goes on."""
        if self.failure is not None:
            self.total += len(data)
            return
        try:
            rest = memoryview(data)
            while rest:
                if self._room <= 0:
                    self._next_file()
                part = rest[: self._room]
                header = _FRAME.pack(seq & 0xFFFFFFFF, at, _STREAMS.index(stream), len(part))
                written = os.writev(self._descriptor, [header, part])
                if written != len(header) + len(part):
                    raise OSError(28, "the disk is full")
                start = len(data) - len(rest)
                self._marks.add(written, len(part), data.count(b"\n", start, start + len(part)))
                self._room -= len(part)
                self.total += len(part)
                rest = rest[len(part) :]
        except OSError as error:
            self.failure = StorageFailed("the output cannot be stored", error)

    def _next_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._marks.close()
            self._number += 1
        else:
            os.makedirs(os.path.dirname(self._base), mode=0o700, exist_ok=True)
        self._room = self._ring_room if self._number else self._head_room
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(f"{self._base}.{self._number}", flags, 0o600)
        os.write(self._descriptor, _START.pack(_MAGIC, self.total))
        self._marks = _Marks(_marks_of(f"{self._base}.{self._number}"))
        if self._number > 2:
            old = f"{self._base}.{self._number - 2}"
            for path in (old, _marks_of(old)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._marks.close()


def _marks_of(path: str) -> str:
    return f"{path}.lines"


class _Marks:
    """Writes the marks of one file of output, by which a reader finds lines quickly. A small file has no marks."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._descriptor = -1
        self._position, self._bytes, self._lines = _START.size, 0, 0
        self._marked = 0

    def add(self, written: int, size: int, lines: int) -> None:
        """Count bytes that were written to the file, of which `size` are output. If a mark cannot be written, no more
        marks are made; the output itself is still stored."""
        self._position += written
        self._bytes += size
        self._lines += lines
        if self._path and self._position - self._marked >= _MARK_EVERY:
            try:
                self._put()
            except OSError:
                self._path = ""

    def _put(self) -> None:
        if self._descriptor < 0:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o600)
        if os.write(self._descriptor, _MARK.pack(self._position, self._bytes, self._lines)) < _MARK.size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._marked = self._position

    def close(self) -> None:
        """Write a last mark at the end, so that a reader can skip the whole file, and close."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                if self._path:
                    self._put()
            os.close(self._descriptor)
            self._descriptor = -1


def _mark_before(path: str, size: int, lines: int) -> tuple[int, int, int] | None:
    """Of the marks of a file with `size` bytes, the last one that has at most `lines` line ends before it. None if
    there is no such mark, or if the marks are damaged."""
    try:
        with open(_marks_of(path), "rb") as file:
            words = file.read()
    except OSError:
        return None
    whole = len(words) - len(words) % _MARK.size
    marks = list(_MARK.iter_unpack(words[:whole]))
    if not all(map(_can_be, marks)) or any(map(_goes_back, marks, marks[1:])):
        return None
    fits = (mark for mark in marks if mark[2] <= lines and mark[0] <= size)
    return max(fits, default=None)


def _can_be(mark: tuple[int, int, int]) -> bool:
    """Whether the mark can be at the end of a frame: the bytes that are not output must be whole frame headers."""
    position, size, lines = mark
    heads = position - _START.size - size
    return heads > 0 and heads % _FRAME.size == 0 and lines <= size


def _goes_back(one: tuple[int, int, int], next_one: tuple[int, int, int]) -> bool:
    return any(later < earlier for earlier, later in zip(one, next_one, strict=True))


def _files(outputs: str, run: RunId) -> list[tuple[int, str]]:
    base = _base(outputs, run)
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(os.path.dirname(base)):
            stem, _, number = name.rpartition(".")
            if stem == run and number.isdigit():
                found.append((int(number), os.path.join(os.path.dirname(base), name)))
    return sorted(found)


def has_kept(outputs: str, run: RunId) -> bool:
    """Whether the run has stored output on disk."""
    return bool(_files(outputs, run))


class KeptReader:
    """Reads the stored output of a run piece by piece. Reading again later gives only the pieces that are new since
    then."""

    def __init__(self, outputs: str, run: RunId) -> None:
        self._outputs = outputs
        self._run = run
        self._number = -1
        """The number of the file that was read last; `_position` says how far."""
        self._position = 0
        self._end = 0
        """How many bytes of the whole output were read so far, including bytes that were dropped."""
        self._line = 1
        """The number of the current line."""

    def frames(self, first_line: int = 1) -> Iterator[Frame]:
        """The pieces that were not read yet; the first one after a gap says how many bytes are missing. Pieces that end
        before the line `first_line` may be skipped."""
        for number, path in _files(self._outputs, self._run):
            if number >= self._number:
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:  # the writer may delete it
                    yield from self._of_file(number, file, first_line)

    def _of_file(self, number: int, file: BinaryIO, first_line: int) -> Iterator[Frame]:
        skipped = 0
        if number == self._number:
            file.seek(self._position)
        else:
            start = file.read(_START.size)
            if len(start) < _START.size:
                return
            magic, offset = _START.unpack(start)
            if magic != _MAGIC:
                raise StorageFailed(f"the kept output of {self._run} is damaged", ValueError("not haft's own file"))
            skipped = max(0, offset - self._end)
            self._number, self._position, self._end = number, _START.size, offset
            self._pass_over(file, first_line)
        while len(header := file.read(_FRAME.size)) == _FRAME.size:
            seq, at, stream, length = _FRAME.unpack(header)
            if stream >= len(_STREAMS):
                raise StorageFailed(f"the kept output of {self._run} is damaged", ValueError("no such stream"))
            data = file.read(length)
            if len(data) < length:
                return  # It is still being written; the next call reads it.
            self._position += _FRAME.size + length
            self._end += length
            frame = Frame(seq, at, _STREAMS[stream], data, skipped, self._line)
            self._line += data.count(b"\n")
            yield frame
            skipped = 0

    def _pass_over(self, file: BinaryIO, first_line: int) -> None:
        """With the help of the marks, skip pieces that end before `first_line`. Reading then goes on at an earlier line
        than `first_line`, perhaps in the middle of that line."""
        if first_line - self._line < 2:
            return
        mark = _mark_before(str(file.name), os.fstat(file.fileno()).st_size, first_line - self._line - 1)
        if mark is not None:
            self._position, size, lines = mark
            self._end += size
            self._line += lines
            file.seek(self._position)


def kept_frames(outputs: str, run: RunId, first_line: int = 1) -> Iterator[Frame]:
    """All stored pieces of a run's output, in order; pieces that end before `first_line` may be left out."""
    return KeptReader(outputs, run).frames(first_line)
