"""Where a regular expression ends, in the languages that write it between two signs.

Programs disagree on whether the closing sign counts inside of brackets (`[/]`), and on what a backslash means there.
Text that would end elsewhere for the one than for the other has no known end, unless the other could only call it an
error.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_BRACKET: Final = r"\[\^?\]?(?:\[:[a-z]+:\]|\[[.=][^\]\n]+[.=]\]|{inner})*\]"
_LITERAL: Final = _BRACKET.format(inner=r"[^\]\n]")
_ESCAPED: Final = _BRACKET.format(inner=r"\\[^\n]|[^\]\\\n]")


@lru_cache(maxsize=64)
def _forms(sign: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    closing = re.escape(sign)
    plain = rf"(?:\\[^\n]|[^\\\n{closing}])*+{closing}"
    return (
        re.compile(plain),
        re.compile(rf"(?:\\[^\n]|{_LITERAL}|[^\\\n\[{closing}])*+{closing}"),
        re.compile(rf"(?:\\[^\n]|{_ESCAPED}|[^\\\n\[{closing}])*+{closing}"),
    )


def end_of_regex(text: str, at: int, sign: str) -> int | None:
    """The position behind the closing sign of an expression that begins at `at`, or None."""
    blind, literal, escaped = (form.match(text, at) for form in _forms(sign))
    if blind is None or literal is None or escaped is None or literal.end() != escaped.end():
        return None
    if blind.end() == literal.end() or text[blind.end()] == "]":
        return literal.end()
    return None


def end_of_replacement(text: str, at: int, sign: str) -> int | None:
    """The same for what is put in its place: brackets mean nothing there, and a line may end after a backslash."""
    while at < len(text):
        letter = text[at]
        if letter == "\n":
            return None
        if letter == sign:
            return at + 1
        if letter == "\\" and at + 1 == len(text):
            return None
        at += 2 if letter == "\\" else 1
    return None
