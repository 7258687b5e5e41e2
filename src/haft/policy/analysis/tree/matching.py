"""Tests whether a file name matches a pattern, in time proportional to their lengths. If haft is not certain, the name
matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

Mark = tuple[str, bool]
"""A character of a pattern, and whether it is literal. A character that is not literal is the wildcard `*` or `?`."""
NameTest = Callable[[str], bool]


def matcher(marks: Iterable[Mark], *, ignores_case: bool = False) -> NameTest:
    """A test whether a whole name matches a pattern."""
    flags = re.DOTALL | (re.IGNORECASE if ignores_case else 0)
    marks = list(marks)
    narrow = re.compile(_regex_text(marks), flags)
    if all(stands_for_itself or character != "?" for character, stands_for_itself in marks):
        return lambda name: narrow.fullmatch(name) is not None
    # In some locales, one character that is not ASCII counts as several, so `?` is treated like `*`.
    starred = [("*", False) if mark == ("?", False) else mark for mark in marks]
    wide = re.compile(_regex_text(starred), flags)
    return lambda name: (narrow if name.isascii() else wide).fullmatch(name) is not None


def _regex_text(marks: list[Mark]) -> str:
    stretches = [""]
    for character, stands_for_itself in marks:
        if stands_for_itself:
            stretches[-1] += re.escape(character)
        elif character == "?":
            stretches[-1] += "."
        else:
            stretches.append("")
    first, *rest = stretches
    if not rest:
        return first
    # The earliest match of each literal stretch is enough, so the pattern never backtracks.
    return first + "".join(f"(?>.*?{each})" for each in rest[:-1] if each) + ".*" + rest[-1]
