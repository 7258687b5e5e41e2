"""Finds the lines that two versions of a text have in common, in bounded time.

First, equal lines at both ends are set aside. Then every line that only one version has is set aside. The remaining
lines go through Myers' greedy algorithm (as in git), which is exact, and fast if little differs. If much differs, the
algorithm takes quadratic time, so it has a budget of steps. When the budget is used up, the texts are split at lines
that occur once in each, and the pieces are compared, with a second budget. If the second budget is used up too, the
texts count as too different. So even a malicious pair of files costs only about a second.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from haft.values import dataclass

EFFORT: Final = 1_000_000
"""How many steps each of the two attempts may take. This is enough for about 1,400 lines inserted or deleted among
shared lines."""

Difference = tuple[int, int, int, int]
"""Four indexes: start and end of lines in the old text, and start and end of the lines in the new text that replace
them."""


def differing_ranges(old: Sequence[str], new: Sequence[str], effort: int = EFFORT) -> list[Difference] | None:
    """The ranges of lines that differ, in order; None if finding them takes more than `effort` steps in both
    attempts."""
    budget = _Budget(effort)
    found = _differing_ranges(old, new, budget)
    if found is not None:
        return found
    budget = _Budget(effort)
    pieces: list[Difference] = []
    for old_at, old_end, new_at, new_end in _between(_anchors(old, new), 0, len(old), len(new)):
        piece = _differing_ranges(old[old_at:old_end], new[new_at:new_end], budget)
        if piece is None:
            return None
        pieces += [(old_at + i, old_at + i_end, new_at + j, new_at + j_end) for i, i_end, j, j_end in piece]
    return pieces


class _Budget:
    """How many steps are left."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left


def _differing_ranges(old: Sequence[str], new: Sequence[str], budget: _Budget) -> list[Difference] | None:
    start, old_end, new_end = differing_middle(old, new)
    old_lines, new_lines = set(old[start:old_end]), set(new[start:new_end])
    old_left = [at for at in range(start, old_end) if old[at] in new_lines]
    new_left = [at for at in range(start, new_end) if new[at] in old_lines]
    pairs = _common([old[at] for at in old_left], [new[at] for at in new_left], budget)
    if pairs is None:
        return None
    return list(_between([(old_left[i], new_left[j]) for i, j in pairs], start, old_end, new_end))


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The lines at which a large change is split, each as its positions in `old` and `new`. Only lines that occur
    exactly once in each text are used: the longest series of them that has the same order in both texts. The resulting
    diff may not be the shortest."""
    once = [line for line, times in Counter(old).items() if times == 1]
    times_new = Counter(new)
    place = {line: at for at, line in enumerate(new) if times_new[line] == 1}
    old_place = {line: at for at, line in enumerate(old)}
    pairs = sorted((old_place[line], place[line]) for line in once if line in place)
    # For each length: the index in `pairs` at which the increasing sequence of this length with the smallest end ends.
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(tails[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        tails[length : length + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = tails[-1] if tails else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    chain.reverse()
    return chain


def differing_middle(old: Sequence[str], new: Sequence[str]) -> tuple[int, int, int]:
    """Three indexes. The first is the index of the first differing line, and is the same in both texts. The second is
    the index after the last differing line of `old`, the third is the index after the last differing line of `new`."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, len(old) - end, len(new) - end


def _between(matched: list[tuple[int, int]], start: int, old_end: int, new_end: int) -> Iterator[Difference]:
    old_at = new_at = start
    for i, j in [*matched, (old_end, new_end)]:
        if i > old_at or j > new_at:
            yield old_at, i, new_at, j
        old_at, new_at = i + 1, j + 1


def _common(old: list[str], new: list[str], budget: _Budget) -> list[tuple[int, int]] | None:
    """The longest common subsequence of two texts, as pairs of positions; None if the budget is used up."""
    numbers: dict[str, int] = {}
    a = array("i", (numbers.setdefault(line, len(numbers)) for line in old))
    b = array("i", (numbers.setdefault(line, len(numbers)) for line in new))
    rows = _searched(a, b, budget)
    return None if rows is None else _walked_back(rows, len(a), len(b))


@dataclass(frozen=True, slots=True)
class _Row:
    """The state of Myers' algorithm before one more insertion or deletion: for the diagonals `first`, `first + 1` and
    so on, the furthest position in the old text."""

    first: int
    furthest: array[int]


def _searched(a: array[int], b: array[int], budget: _Budget) -> list[_Row] | None:
    """The rows of Myers' algorithm, one for each insertion or deletion that leads from `a` to `b`; None if the budget
    is used up."""
    length, height = len(a), len(b)
    middle = length + height + 1
    furthest = array("i", bytes(4 * (2 * middle + 1)))
    rows: list[_Row] = []
    for d in range(middle):
        # The diagonals below `low` and above `high` are outside of the texts, or have reached the end of one text.
        low, high = -d + 2 * max(0, d - height), d - 2 * max(0, d - length)
        rows.append(_Row(low - 1, furthest[middle + low - 1 : middle + high + 2]))
        for k in range(low, high + 1, 2):
            left, right = furthest[middle + k - 1], furthest[middle + k + 1]
            x = begun = right if _went_down(left, right, k, d, length, height) else left + 1
            y = x - k
            while x < length and y < height and a[x] == b[y]:
                x += 1
                y += 1
            furthest[middle + k] = x
            budget.left -= 1 + x - begun
            if x >= length and y >= height:
                return rows
        if budget.left < 0:
            return None
    return rows


def _went_down(left: int, right: int, k: int, d: int, length: int, height: int) -> bool:
    """Whether diagonal `k` is best reached by an insertion from its right neighbour, not by a deletion from its left
    one. A step past the end of a text is not allowed."""
    return k == -d or (k != d and (left >= length or (left < right <= height + k)))


def _walked_back(rows: list[_Row], length: int, height: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    x, y = length, height
    for d in range(len(rows) - 1, -1, -1):
        came_x = came_y = 0
        if d:
            k, row = x - y, rows[d]
            left, right = row.furthest[k - 1 - row.first], row.furthest[k + 1 - row.first]
            down = _went_down(left, right, k, d, length, height)
            came_x = right if down else left
            came_y = came_x - (k + 1 if down else k - 1)
        while x > came_x and y > came_y:
            x -= 1
            y -= 1
            pairs.append((x, y))
        x, y = came_x, came_y
    pairs.reverse()
    return pairs
