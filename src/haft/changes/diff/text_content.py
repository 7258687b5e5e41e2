"""File content as lines, or the reason why it cannot be shown as lines.

Of a large file, which is not shown, only the beginning is read, to find out whether the file is text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO, Final, Literal

from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.diff.patches import lines_of
from haft.values import dataclass

LARGE: Final = 1_000_000
MANY_LINES: Final = 20_000
_BEGINNING: Final = 8192

Trouble = Literal["unreadable", "gone", "binary", "encoding", "large"]
"""Why content is not shown as lines. If there are several reasons, the first in this order is shown."""

Open = Callable[[], BinaryIO | None]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file or link: its lines, or the reason why they are not shown."""

    lines: Sequence[str] = ()
    trouble: Trouble | None = None


def content_of(entry: Entry | None, read: Open) -> Content:
    """The content of an entry as lines; empty if `entry` is None. The content of a link is its target."""
    if entry is None:
        return Content()
    if entry.kind == "link":
        return Content(lines_of(entry.content or ""))
    if entry.size == 0:
        return Content()
    if entry.content == UNREADABLE:
        return Content(trouble="unreadable")
    stream = read()
    if stream is None:
        return Content(trouble="gone")
    with stream:
        beginning = stream.read(_BEGINNING)
        if b"\0" in beginning:
            return Content(trouble="binary")
        if entry.size > LARGE:
            return Content(trouble="large")
        rest = stream.read(LARGE + 1)
    return _decoded(beginning + rest)


def _decoded(raw: bytes) -> Content:
    if len(raw) > LARGE:
        return Content(trouble="large")
    try:
        lines = lines_of(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return Content(trouble="encoding")
    return Content(lines, "large" if len(lines) > MANY_LINES else None)


def describe_trouble(old: Entry | None, new: Entry | None, before: Content, after: Content) -> str | None:
    """A text that says why a file is not shown line by line; None if it can be shown."""
    troubles = {before.trouble, after.trouble}
    if "unreadable" in troubles:
        return "content may not be read"
    if "gone" in troubles:
        sides = [side for side, content in (("before", before), ("after", after)) if content.trouble == "gone"]
        return f"content {' and '.join(sides)} is no longer kept"
    if "binary" in troubles:
        return f"binary file, {_bytes(old, new)}"
    if "encoding" in troubles:
        return f"not UTF-8 text, {_bytes(old, new)}"
    if "large" in troubles:
        return f"large file ({_extent(old, new, before, after)}): not shown line by line"
    return None


def _extent(old: Entry | None, new: Entry | None, before: Content, after: Content) -> str:
    if max(0 if entry is None else entry.size for entry in (old, new)) > LARGE:
        return _arrow([megabytes(entry.size) for entry in (old, new) if entry is not None])
    counts = [len(content.lines) for entry, content in ((old, before), (new, after)) if entry is not None]
    return _arrow([f"{count:,}" for count in counts]) + " lines"


def _bytes(old: Entry | None, new: Entry | None) -> str:
    sizes = [entry.size for entry in (old, new) if entry is not None]
    return _arrow([f"{size:,}" for size in sizes]) + (" byte" if sizes[-1] == 1 else " bytes")


def _arrow(words: Sequence[str]) -> str:
    return words[0] if len(set(words)) == 1 else " → ".join(words)


def megabytes(size: int) -> str:
    """A size in megabytes, rounded for people."""
    millions = size / 1_000_000
    return f"{millions:.1f} MB" if millions < 10 else f"{millions:,.0f} MB"
