"""Undoes line breaks inside of the messages that `evidence` looks for.

Loggers such as Rich break long lines at a width, so that "Read-only file system: 'notes.txt'" can be on two lines of a
program's log. `Sandbox.explain_by_log` uses this module. It joins only lines that belong to such a message, because the
paths of other lines would lead to wrong hints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from haft.lazy import regex
from haft.sandbox.evidence import LONGEST_LINE, MAX_LINES, SIGN

MOST_JOINED: Final = 6
"""The most lines that are one message."""
LONGEST_NAME: Final = 1_000
"""The most characters after the words of a message that can be the name of a file."""
_FRAMES: Final = ("│", "╭", "╰", "┃", "┏", "┗")
"""The first characters of lines that show the code around an error. Code can contain any message."""
_UNFINISHED: Final = regex(
    r"\s+or|(?:\s+or\s+directory)?[:,](?:\s+\w+)?"  # the file comes next
    r"|(?s:.*)(?:^|[\s:(,])(?:'[^']*|\"[^\"]*)"  # the file has begun
)


def unwrapped(log: str) -> str:
    """The last lines of a log, each message on one line, without code excerpts."""
    lines = [line.rstrip() for line in log.splitlines()[-MAX_LINES:]]
    widths: dict[int, int] = {}
    for line in lines:
        widths[_indent(line)] = max(len(line), widths.get(_indent(line), 0))
    found = []
    at = 0
    while at < len(lines):
        text, count = _message(lines[at : at + MOST_JOINED], widths)
        at += count
        if not text.startswith(_FRAMES):
            found.append(text)
    return "\n".join(found)


def _message(lines: list[str], widths: Mapping[int, int]) -> tuple[str, int]:
    """The message that begins in the first line, and how many lines it has. `widths` has the length of the longest line
    for each indentation."""
    text, count = lines[0].strip(), 1
    if text.startswith(_FRAMES):
        return text, 1
    while count < len(lines) and len(text) <= LONGEST_LINE:
        before, after = lines[count - 1], lines[count]
        more = after.strip()
        if not more or more.startswith(_FRAMES) or _indent(before) != _indent(after) or not _is_broken(text, more):
            break
        # A word that is too long for a line begins a new line, and fills it to the end.
        is_cut = len(before) == widths[_indent(before)] and " " not in before.strip()
        text += more if is_cut else f" {more}"
        count += 1
    return text, count


def _is_broken(text: str, more: str) -> bool:
    """Whether `more` continues a message at the end of `text`."""
    if (sign := SIGN.search(text)) is not None:
        return len(text) - sign.end() <= LONGEST_NAME and _UNFINISHED.fullmatch(text, sign.end()) is not None
    sign = SIGN.search(f"{text} {more}")
    return sign is not None and sign.start() < len(text) < sign.end()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
