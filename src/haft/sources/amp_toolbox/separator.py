"""Which character a script splits its input lines at, where its text shows it.

Tools in the text form are given `key: value`. A public page once said `key=value`, and a dozen published scripts read
only that. A script in which nothing but `=` is split at is given what it reads.
"""

from __future__ import annotations

import re
from typing import Final

COLON: Final = ": "
EQUALS: Final = "="


def _splits_at(mark: str) -> re.Pattern[str]:
    """The ways in which scripts take a line apart at `mark`: shells, awk, cut, sed, grep, Python, JavaScript, Ruby."""
    q = r"""["'`]?"""
    m = re.escape(mark)
    ways = (
        rf"""\bIFS=\$?{q}{m}\s?{q}(?=[\s;]|$)""",
        rf"""\bcut\b[^|\n]*\s-d\s*{q}{m}{q}""",
        rf"""\bawk\b[^|\n]*\s-F\s*{q}{m}\s?{q}""",
        rf"""\bFS\s*=\s*{q}{m}""",
        rf"""\$\{{\w+(?:%%?|##?)\*?{m}\s?\*?\}}""",
        rf"""\$\{{\w+(?:%%?|##?)[\w-]*{m}[^}}\n]*\}}""",
        rf"""\b(?:r?split|r?partition|indexOf|index|find|explode)\s*\(\s*{q}{m}\s?{q}""",
        rf"""\[\^{m}\s?\]""",
        rf"""(?:\b(?:sed|grep|awk|match|test)\b|=~)[^|\n]*\^[\w$\{{\}}()"'.?*+-]+{m}""",
        rf"""\bstartswith\s*\(\s*f?["'][\w{{}}-]+{m}""",
        rf"""^\s*{q}\w+{m}\s?{q}\*{q}\)""",
    )
    return re.compile("|".join(ways), re.MULTILINE)


_AT_COLON: Final = _splits_at(":")
_AT_EQUALS: Final = _splits_at("=")
_COMMENT: Final = re.compile(r"^\s*(?:#|//).*$", re.MULTILINE)
_JSON: Final = re.compile(r"\bjq\b|JSON\.parse|json\.loads?\b")


def separator_of(text: str) -> str | None:
    """`=` or `: `, where a script shows that it reads that; None where it shows neither. One that shows both is given
    the colon, which is the protocol's."""
    code = _COMMENT.sub("", text)
    if _AT_COLON.search(code):
        return COLON
    if _AT_EQUALS.search(code) and not _JSON.search(code):
        return EQUALS
    return None
