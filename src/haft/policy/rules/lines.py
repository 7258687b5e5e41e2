"""Where in a TOML text each rule stands."""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|^[ \t]*(?P<header>\[\[[ \t]*permissions[ \t]*\]\])",
    re.DOTALL | re.MULTILINE,
)
"""What may hold anything, and the headers that are looked for."""


def rule_lines(text: str, rules: int) -> tuple[int, ...] | None:
    """The line of each `[[permissions]]`, from 1; None where there are not as many of them as rules, since they were
    written in another way."""
    found = [match.start("header") for match in _PIECES.finditer(text) if match["header"]]
    if len(found) != rules:
        return None
    lines, line, at = [], 1, 0
    for start in found:
        line += text.count("\n", at, start)
        at = start
        lines.append(line)
    return tuple(lines)
