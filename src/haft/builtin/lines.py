"""Reads a range of lines from a file of any size, with bounded memory.

Only `\\n` separates lines: a lone `\\r` or a form feed is content. A final newline ends the last line and starts no new
one. `read_file` uses this module, which knows only bytes and line numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final, NamedTuple

from haft.contracts import ToolFailed

_CHUNK: Final = 1 << 18


class Part(NamedTuple):
    """The part of a file that was read."""

    content: bytes
    first: int
    last: int
    """The number of the last line of which `content` has at least a part."""
    total: int | None
    """The number of lines in the file; None if its end was not reached."""
    cut: bool = False
    """Whether `content` was cut at the byte limit."""


def count_lines(content: bytes) -> int:
    """The number of lines in `content`; a last line without a newline counts."""
    return content.count(b"\n") + (1 if content and not content.endswith(b"\n") else 0)


def read_lines(file: BinaryIO, first: int, last: int | None, *, most: int, stopped: Callable[[], bool]) -> Part:
    """Read the lines `first` to `last` (None: to the end), at most `most` bytes.

    If the file ends before the line `first`, the part is empty, and its `total` is set. Raises `ToolFailed` if
    `stopped` returns True meanwhile.
    """
    rest, lines, ended = _skip(file, first - 1, stopped)
    if ended:
        return Part(b"", first, first, lines)
    wanted = None if last is None else last - first + 1
    collected = bytearray()
    newlines = 0
    chunk = rest or file.read(_CHUNK)
    complete = cut = False
    while chunk and not complete and not cut:
        _go_on(stopped)
        if wanted is not None:
            ending = _after_newlines(chunk, wanted - newlines)
            if ending is not None:
                chunk, rest, complete = chunk[:ending], chunk[ending:], True
        room = most - len(collected)
        if len(chunk) > room:
            chunk, cut = chunk[:room], True
        collected += chunk
        newlines += chunk.count(b"\n")
        if not complete and not cut:
            chunk = file.read(_CHUNK)
    content = bytes(collected)
    shown_lines = count_lines(content)
    at_end = not cut and (not complete or not (rest or file.read(1)))
    if not content and at_end:
        return Part(b"", first, first - 1, first - 1)
    final = first + max(shown_lines, 1) - 1
    return Part(content, first, final, final if at_end else None, cut)


def _skip(file: BinaryIO, lines: int, stopped: Callable[[], bool]) -> tuple[bytes, int, bool]:
    """Skip `lines` lines. Returns the bytes that were already read after these lines, the number of skipped lines, and
    whether the file ended first."""
    passed = 0
    open_line = False
    while passed < lines:
        _go_on(stopped)
        chunk = file.read(_CHUNK)
        if not chunk:
            return b"", passed + (1 if open_line else 0), True
        ending = _after_newlines(chunk, lines - passed)
        if ending is not None:
            return chunk[ending:], lines, False
        passed += chunk.count(b"\n")
        open_line = not chunk.endswith(b"\n")
    return b"", lines, False


def _after_newlines(chunk: bytes, count: int) -> int | None:
    """The position after the `count`-th newline of `chunk`; None if `chunk` has fewer newlines."""
    if chunk.count(b"\n") < count:
        return None
    position = 0
    for _ in range(count):
        position = chunk.index(b"\n", position) + 1
    return position


def _go_on(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise ToolFailed("the call was stopped while it read a file")
