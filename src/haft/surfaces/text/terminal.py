"""Text for a terminal: escaped control characters, colour, and lines that fit.

Text of tools and agents can control a terminal: escape sequences overwrite other text, bidirectional marks reverse it.
So everything that is printed for a person passes through `visible`. Data for programs does not: a pipe gets the bytes
unchanged.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import IO, Any, Final

from haft.lazy import regex

_SUSPECT: Final = regex(r"[^\n\t\x20-\x7e]")
_BOLD, _DIM, _RED, _YELLOW, _GREEN = "1", "2", "31;1", "33", "32"
STYLES: Final = {"bold": _BOLD, "dim": _DIM, "bad": _RED, "warn": _YELLOW, "good": _GREEN}


_HIDDEN: Final = regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable, but that show nothing."""


MOST_MARKS: Final = 4
"""How many marks, such as accents, one character may have. No language needs more, and a high stack of marks would
cover other lines."""


def visible(text: str) -> str:
    """`text` with every invisible character written as an escape, except newlines and tabs."""
    return _SUSPECT.sub(_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`text` on one line, with every invisible character written as an escape."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable() and not _HIDDEN.match(character):
        return character
    return _written(character)


def _written(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode()


def columns(text: str) -> int:
    """How many columns of a terminal a visible text takes at most. A mark that is drawn over the character before it
    counts as one column, because no terminal gives it more."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = "WFA" if _draws_ambiguous_wide() else "WF"
    return sum(2 if unicodedata.east_asian_width(character) in wide else 1 for character in text)


def _draws_ambiguous_wide() -> bool:
    """Whether the locale may draw characters of ambiguous width in two columns."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return locale.startswith(("ja", "ko", "zh"))


def clipped(text: str, room: int) -> str:
    """The beginning of a visible text that fits into `room` columns."""
    return next(_pieces(text, room))


BAR: Final = "  │ "


def framed(text: str, first: str = BAR, *, at_blanks: bool = False) -> Iterator[str]:
    """The lines of a text, each with a bar before it. The first line has `first` before it instead. Long lines are
    broken before the terminal would break them, so that no text can look as if haft had printed it. Tabs are escaped,
    because their width is unknown, and so are marks that would be drawn over the bar. With `at_blanks`, lines are
    broken between words, and the blank there is dropped. Without it, for example for a command, no character is
    dropped."""
    room = max(8, width() - max(columns(BAR), columns(first)))
    for line in visible(text).replace("\t", "\\t").split("\n"):
        for piece in _between_words(line, room) if at_blanks and line.isascii() else _pieces(line, room):
            yield f"{first}{piece}"
            first = BAR


def _between_words(text: str, room: int) -> Iterator[str]:
    while len(text) > room:
        at = text.rfind(" ", 1, room + 1)
        at = room if at < 0 else at
        yield text[:at]
        text = text[at:].removeprefix(" ")
    yield text


def _pieces(text: str, room: int) -> Iterator[str]:
    """A line in pieces of at most `room` columns. A mark is escaped if it begins a piece or follows too many other
    marks."""
    if text.isascii():
        yield from (text[at : at + room] for at in range(0, max(1, len(text)), room))
        return
    import unicodedata

    piece, used, marks = "", 0, MOST_MARKS
    for character in text:
        is_mark = unicodedata.category(character) in ("Mn", "Me", "Mc")
        marks = marks + 1 if is_mark else 0
        shown = _written(character) if marks > MOST_MARKS else character
        if used + columns(shown) > room:
            yield piece
            piece, used = "", 0
            if is_mark:
                shown, marks = _written(character), MOST_MARKS + 1
        piece += shown
        used += columns(shown)
    yield piece


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether a stream is a terminal. `stream` may be None or closed."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # The stream is closed.
        return False


def styled(text: str, style: str, stream: IO[Any]) -> str:
    """`text` in colour if `stream` is a terminal with colours."""
    if not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def width() -> int:
    """The number of columns of the terminal."""
    # This does the same as `shutil.get_terminal_size`, but importing `shutil` would take too long.
    columns_set = os.environ.get("COLUMNS", "")
    if columns_set.isascii() and columns_set.isdecimal() and int(columns_set):
        return int(columns_set)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def fitted(line: str) -> str:
    """A line cut to the terminal's width; unchanged if stdout is not a terminal."""
    if not is_terminal(sys.stdout):
        return line
    room = width()
    return line if columns(line) <= room else clipped(line, max(2, room - 1)) + "…"
