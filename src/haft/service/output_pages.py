"""The stored output of a run, page by page: `ToolService.output` and the MCP server use this module."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from haft.values import dataclass

if TYPE_CHECKING:
    from haft.runs import History, RunRecord

LONGEST_PAGE: Final = 50_000
"""The longest text of one page of output, in characters."""
MOST_PIECES: Final = 100_000


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A piece of a run's output."""

    text: str
    next: int | None
    """Where the next page begins; None if this is the last page."""
    total: int
    """The length of the whole output in bytes."""
    record: RunRecord
    """The run."""


def output_page(history: History, record: RunRecord, offset: int) -> OutputPage:
    """The output from byte `offset` on, as much as fits on a page."""
    data, at = bytearray(), 0
    for piece in _pieces(history, record):
        begin = max(0, offset - at)
        at += len(piece)
        if begin < len(piece) and len(data) <= LONGEST_PAGE:
            data += piece[begin : begin + LONGEST_PAGE + 1 - len(data)]
    page = bytes(data[:LONGEST_PAGE])
    if len(data) > LONGEST_PAGE:
        page = _whole_characters(page)
    end = offset + len(page)
    return OutputPage(page.decode("utf-8", "replace"), end if end < at else None, at, record)


def _pieces(history: History, record: RunRecord) -> Iterator[bytes]:
    """The stored output. A note stands for bytes that were not kept."""
    for frame in history.output(record):
        if frame.skipped:
            yield f"\n[{frame.skipped:_} bytes were not kept]\n".encode()
        yield frame.data


def _whole_characters(data: bytes) -> bytes:
    """The data without a character at its end that goes on after it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data if length <= back else data[:-back]
    return data


def output_lines(
    history: History, record: RunRecord, first: int, last: int | None, containing: str | None
) -> OutputPage:
    """The lines from `first` to `last`, and only those with the text `containing`, as many as fit on a page. `next` of
    the page is the number of a line."""
    chosen: list[str] = []
    length, following = 0, None
    data = b"".join(islice(_pieces(history, record), MOST_PIECES))
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(keepends=True), 1):
        if number < first or (containing is not None and containing not in line):
            continue
        if last is not None and number > last:
            break
        if chosen and length + len(line) > LONGEST_PAGE:
            following = number
            break
        chosen.append(line if len(line) <= LONGEST_PAGE else f"{line[:LONGEST_PAGE]}[the line goes on]\n")
        length += len(line)
    return OutputPage("".join(chosen), following, len(data), record)
