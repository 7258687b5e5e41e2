"""Text that a tool, an agent or a file wrote, as HTML: nothing in it can become markup, reverse the text around it,
or hide. A character that shows nothing, such as an escape code or a bidirectional mark, stands there as its code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from markupsafe import Markup, escape

from haft.surfaces.text.terminal import one_line, visible

_SEQUENCE: Final = r"\x1b\[[0-9;?]*[ -/]*[@-~]"
"""A control sequence of a terminal, such as one for colours. Its code is shown as one."""
_UNUSUAL: Final = re.compile(rf"{_SEQUENCE}|[^\n\t\x20-\x7e]")
_UNUSUAL_ON_A_LINE: Final = re.compile(rf"{_SEQUENCE}|[^\x20-\x7e]")
LONGEST: Final = 400
"""The longest text that is shown on one line, in characters. Styles cut it where the line ends; this keeps pages
short."""


def written(text: Any) -> Markup:
    """Text of several lines, for an element that keeps blanks and line ends."""
    return _isolated(_coded(str(text).replace("\r\n", "\n"), _UNUSUAL, visible))


def written_line(text: Any, longest: int = LONGEST) -> Markup:
    """Text on one line."""
    return _isolated(_coded(clipped(str(text), longest), _UNUSUAL_ON_A_LINE, one_line))


def written_words(text: Any, longest: int = LONGEST) -> Markup:
    """A sentence of haft on one line, in which names and commands stand between backticks: these become code."""
    pieces = clipped(str(text), longest).split("`")
    is_paired = len(pieces) % 2 == 1
    html = "".join(
        f"<code>{_coded(piece, _UNUSUAL_ON_A_LINE, one_line)}</code>"
        if number % 2 and is_paired
        else _coded(piece if is_paired or not number else f"`{piece}", _UNUSUAL_ON_A_LINE, one_line)
        for number, piece in enumerate(pieces)
    )
    return _isolated(html)


def written_code(text: str) -> Markup:
    """A piece of a line of code, for an element that isolates the line as a whole."""
    return Markup(_coded(text, _UNUSUAL, visible))  # noqa: S704  `_coded` escapes


def plain_line(text: Any, longest: int = LONGEST) -> str:
    """Text on one line for an attribute, such as the name of a link."""
    return one_line(clipped(str(text), longest))


def clipped(text: str, longest: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def _coded(text: str, unusual: re.Pattern[str], made_visible: Callable[[str], str]) -> str:
    """The text as HTML, with the code of each character that shows nothing. Escaping for HTML comes first: it adds and
    removes only characters that are not unusual."""

    def shown(match: re.Match[str]) -> str:
        code = made_visible(match[0])
        return code if code == match[0] else f'<span class="unseen">{code}</span>'

    return unusual.sub(shown, str(escape(text)))


def _isolated(html: str) -> Markup:
    return Markup(f"<bdi>{html}</bdi>")  # noqa: S704  `_coded` made it
