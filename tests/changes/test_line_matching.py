"""Common lines: exact where it can be, right in any case, and never without end."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from haft.changes.diff.line_matching import differing_ranges

TEXTS = st.lists(st.sampled_from("abcdef"), max_size=14)


def longest(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for one in a:
        above, row = row, [0]
        for j, other in enumerate(b):
            row.append(above[j] + 1 if one == other else max(above[j + 1], row[j]))
    return row[-1]


def applied(a: list[str], b: list[str], found: list[tuple[int, int, int, int]]) -> list[str]:
    result = list(a)
    for start, end, new_start, new_end in reversed(found):
        assert end > start or new_end > new_start
        result[start:end] = b[new_start:new_end]
    return result


@settings(max_examples=500, deadline=None)
@given(TEXTS, TEXTS)
def test_what_differs_is_the_least_that_can(a, b):
    found = differing_ranges(a, b)
    assert applied(a, b, found) == b
    assert len(a) - sum(end - start for start, end, _, _ in found) == longest(a, b)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.integers(0, 20).map(str), max_size=20), st.lists(st.integers(0, 20).map(str), max_size=20))
def test_on_a_small_budget_the_answer_is_right_or_none(a, b):
    found = differing_ranges(a, b, 5)
    assert found is None or applied(a, b, found) == b


def test_hopeless_texts_are_given_up():
    dice = random.Random(1)
    a, b = ([dice.choice("ab") for _ in range(2000)] for _ in range(2))
    assert differing_ranges(a, b, 10_000) is None
    assert applied(a, b, differing_ranges(a, b)) == b


def test_moved_and_shuffled_lines_are_taken_apart():
    lines = [f"line {n}" for n in range(3000)]
    moved = lines[1000:1900] + lines[:1000] + lines[1900:]
    assert differing_ranges(lines, moved, 10_000) == [(0, 0, 0, 900), (1000, 1900, 1900, 1900)]
    shuffled = random.Random(1).sample(lines, len(lines))
    assert applied(lines, shuffled, differing_ranges(lines, shuffled, 10_000)) == shuffled
