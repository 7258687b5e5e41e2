"""Which character a script splits its input lines at, where its text shows it.

Tools in the text form are given `key: value`. A public page once said `key=value`, and a dozen published scripts read
only that. What counts is how the input is taken apart: a colon that splits an address or a program's output says
nothing. Where both are as likely, a script is given the protocol's own, and `haft tools check` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from haft.sources.amp_toolbox.input_splits import CALLED_SO, ELSEWHERE, splits

COLON: Final = ": "
EQUALS: Final = "="


@dataclass(frozen=True, slots=True)
class Shown:
    """What a script shows of how it reads its input."""

    separator: str | None = None
    """`=` or `: `; None where it shows neither."""
    is_unsure: bool = False
    """Whether it might as well be the other one."""
    assigns: bool = False
    """Whether it may set a variable of any name that its input says."""


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


def shown_by(text: str) -> Shown:
    """Weigh every split that a script shows: the one that is most likely of its input decides."""
    most = {":": ELSEWHERE, "=": ELSEWHERE}
    either, assigns = ELSEWHERE, _ASSIGNS.search(text) is not None
    for split in splits(text):
        if len(split.marks) > 1:
            either = max(either, split.of)
        else:
            (mark,) = split.marks
            most[mark] = max(most[mark], split.of)
    colon, equals = most[":"], most["="]
    if either > ELSEWHERE and either >= max(colon, equals):
        return Shown(COLON, assigns=assigns)
    if equals > colon:
        is_shown = equals >= CALLED_SO
        return Shown(EQUALS if is_shown else None, is_unsure=not is_shown, assigns=assigns)
    return Shown(COLON if colon else None, is_unsure=bool(colon) and colon == equals, assigns=assigns)


def separator_of(text: str) -> str | None:
    """`=` or `: `, where a script shows that it reads that; None where it shows neither."""
    return shown_by(text).separator
