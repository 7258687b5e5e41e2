"""Finds the line of each rule in a TOML text."""

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
"""Matches strings and comments, which are skipped because they may contain anything, and the `[[permissions]]`
headers."""


def rule_lines(text: str, rules: int) -> tuple[int, ...] | None:
    """The line number of each `[[permissions]]`, counted from 1. None if there are not exactly `rules` of them, because
    the file writes its rules in another way."""
    found = [match.start("header") for match in _PIECES.finditer(text) if match["header"]]
    if len(found) != rules:
        return None
    lines, line, at = [], 1, 0
    for start in found:
        line += text.count("\n", at, start)
        at = start
        lines.append(line)
    return tuple(lines)
