"""Which character a script splits its input lines at, where its text shows it.

Tools in the text form are given `key: value`. A public page once said `key=value`, and a dozen published scripts read
only that. What counts is how the input is taken apart: a colon that splits an address or a program's output says
nothing. Where both are as likely, a script is given the protocol's own, and `haft tools check` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from haft.sources.amp_toolbox.splitting import CALLED_SO, ELSEWHERE, splits

COLON: Final = ": "
EQUALS: Final = "="


@dataclass(frozen=True, slots=True)
class Shown:
    """What a script shows of how it reads its input."""

    separator: str | None = None
    """`=` or `: `; None where it shows neither."""
    is_unsure: bool = False
    """Whether it might as well be the other one."""
    ends: str = ""
    """The characters that end a name in a line of its input, as far as it shows them."""


def shown_by(text: str) -> Shown:
    """Weigh every split that a script shows: the one that is most likely of its input decides."""
    most = {":": ELSEWHERE, "=": ELSEWHERE}
    either, blank = ELSEWHERE, ""
    for split in splits(text):
        blank = " " if split.at_blanks and split.of > ELSEWHERE else blank
        if len(split.marks) > 1:
            either = max(either, split.of)
        else:
            (mark,) = split.marks
            most[mark] = max(most[mark], split.of)
    colon, equals = most[":"], most["="]
    if either > ELSEWHERE and either >= max(colon, equals):
        return Shown(COLON, ends=f":={blank}")
    if equals > colon:
        is_shown = equals >= CALLED_SO
        return Shown(EQUALS if is_shown else None, is_unsure=not is_shown, ends=f"={blank}")
    is_unsure = bool(colon) and colon == equals
    return Shown(COLON if colon else None, is_unsure=is_unsure, ends=(f":={blank}" if is_unsure else f":{blank}"))


def separator_of(text: str) -> str | None:
    """`=` or `: `, where a script shows that it reads that; None where it shows neither."""
    return shown_by(text).separator
