"""The output of a run by lines, each with its number and its stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from haft.values import dataclass

_PASSED: Final = ("✓", "✔")
_FAILED: Final = ("✗", "✘", "✖", "×")
LONGEST_LINE: Final = 4000
"""A longer line is cut for the page, with a word that it was."""


@dataclass(frozen=True, slots=True)
class OutputLine:
    number: int
    text: str
    is_error: bool
    """Whether it came on stderr."""
    is_gap: bool = False
    """Whether it stands for output that was not kept."""

    @property
    def style(self) -> str:
        """How the line looks. Many test runners mark what passed and what failed."""
        if self.is_gap or self.is_error:
            return "low" if self.is_gap else "err"
        first = self.text.lstrip()[:1]
        return "good" if first in _PASSED else "poor" if first in _FAILED else ""


@dataclass(frozen=True, slots=True)
class Output:
    """The end of an output."""

    lines: list[OutputLine]
    total_lines: int
    total_bytes: int
    last: int
    """The number of the last event whose text is in it; -1 if there is none."""
    ends_open: bool
    """Whether the last line has no end yet, so that what comes next goes on with it."""

    @property
    def before(self) -> int:
        """How many lines before these are not shown."""
        return self.total_lines - len(self.lines)


def output_of(frames: Iterable[Any], most: int) -> Output:
    """The last lines of an output. A line that begins on one stream and goes on on the other becomes two."""
    lines: deque[OutputLine] = deque(maxlen=most)
    number, size, last = 0, 0, -1
    pending, stream = bytearray(), "stdout"

    def end(is_gap: bool = False) -> None:
        nonlocal number
        number += 1
        text = bytes(pending[:LONGEST_LINE]).decode("utf-8", "replace")
        more = len(pending) - LONGEST_LINE
        text += f"… ({more:,} more bytes in this line)" if more > 0 else ""
        lines.append(OutputLine(number, text, stream == "stderr", is_gap))
        pending.clear()

    for frame in frames:
        last = max(last, frame.seq)
        if frame.skipped:
            if pending:
                end()
            pending += f"{frame.skipped:,} bytes were not kept".encode()
            size += frame.skipped
            end(is_gap=True)
        if frame.stream != stream:
            if pending:
                end()
            stream = frame.stream
        size += len(frame.data)
        *whole, rest = frame.data.split(b"\n")
        for line in whole:
            pending += line
            end()
        pending += rest
    ends_open = bool(pending)
    if pending:
        end()
    return Output(list(lines), number, size, last, ends_open)
