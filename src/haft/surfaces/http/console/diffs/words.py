"""Which words of a changed line changed."""

from __future__ import annotations

import difflib
import re
from typing import Final

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
LONGEST: Final = 500
"""Words of longer lines are not compared."""
LEAST_ALIKE: Final = 0.4
"""Lines that have less in common are different lines, not a changed one: marks would cover nearly all of them."""

Ranges = list[tuple[int, int]]


def changed_words(old: str, new: str) -> tuple[Ranges, Ranges]:
    """The ranges that changed, in the old and in the new line; none if the lines are too different or too long."""
    if len(old) > LONGEST or len(new) > LONGEST:
        return [], []
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    same = sum(len("".join(before[at : at + size]).strip()) for at, _, size in matcher.get_matching_blocks())
    if same < LEAST_ALIKE * max(len(old.strip()), len(new.strip())):
        return [], []
    removed, added = [], []
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            removed.append(_range(before, old_from, old_to))
            added.append(_range(after, new_from, new_to))
    return _joined(removed, old), _joined(added, new)


def _range(words: list[str], first: int, last: int) -> tuple[int, int]:
    start = sum(map(len, words[:first]))
    return start, start + sum(map(len, words[first:last]))


def _joined(ranges: Ranges, line: str) -> Ranges:
    """Ranges with only blanks between them as one."""
    found: Ranges = []
    for start, end in ranges:
        if start == end:
            continue
        if found and not line[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
