"""Detects the character at which a script splits its input lines.

Tools that describe themselves as text get lines of `key: value`. A public page once said `key=value`, and a dozen
published scripts read only that form. Only splits of the input count: a colon that splits an address or the output of a
program says nothing. If both characters are equally likely, the script gets `key: value` as the protocol says, and
`haft tools check` reports that the separator is unclear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from haft.sources.amp_toolbox.input_splits import NAMED_LIKE_INPUT, NOT_INPUT, splits

COLON: Final = ": "
EQUALS: Final = "="


@dataclass(frozen=True, slots=True)
class DetectedSeparator:
    """How a script seems to read its input."""

    separator: str | None = None
    """`=` or `: `; None if the script shows neither."""
    is_unsure: bool = False
    """Whether the other separator is as likely."""
    assigns: bool = False
    """Whether the script may set a variable whose name comes from its input."""


_ASSIGNS: Final = re.compile(
    r"""\b(?:declare|typeset|local|export|readonly|setenv|set)(?:\s{1,8}-\w{1,4}){0,3}\s{1,8}["']?\$
    |\beval\b|\bprintf\s{1,8}-v\s{0,8}["']?\$|\bread\b[^\n;|]{0,60}\s["']?\$
    |(?:\bsource|(?:^|[;&|])\s{0,8}\.)\s{1,8}(?:/dev/stdin|<\()
    |\$\$\w|[$@%]\{\s{0,8}\$\w{1,40}\s{0,8}\}\s{0,8}=|\bextract\s{0,8}\(
    |\bsetattr\s{0,8}\(|\b(?:globals|locals|vars)\(\)|(?<![.\w])exec\s?\(\s?f["']|\benviron\.update
    |\b(?:globalThis|window|process\.env|environ|ENV)\[[^\]"']{1,60}\]\s{0,8}=[^=]
    |\bset(?:env|Env)\s{0,8}\(\s{0,8}[A-Za-z_$]|\binstance_variable_set\b|\bSYMTAB\b""",
    re.MULTILINE | re.VERBOSE,
)


def detect_separator(text: str) -> DetectedSeparator:
    """The separator of the split that most likely splits the script's input."""
    most = {":": NOT_INPUT, "=": NOT_INPUT}
    either, assigns = NOT_INPUT, _ASSIGNS.search(text) is not None
    for split in splits(text):
        if len(split.marks) > 1:
            either = max(either, split.likelihood)
        else:
            (mark,) = split.marks
            most[mark] = max(most[mark], split.likelihood)
    colon, equals = most[":"], most["="]
    if either > NOT_INPUT and either >= max(colon, equals):
        return DetectedSeparator(COLON, assigns=assigns)
    if equals > colon:
        is_shown = equals >= NAMED_LIKE_INPUT
        return DetectedSeparator(EQUALS if is_shown else None, is_unsure=not is_shown, assigns=assigns)
    return DetectedSeparator(COLON if colon else None, is_unsure=bool(colon) and colon == equals, assigns=assigns)


def separator_of(text: str) -> str | None:
    """The separator that a script reads, `=` or `: `; None if the script shows neither."""
    return detect_separator(text).separator
