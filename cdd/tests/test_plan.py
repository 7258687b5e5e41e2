from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd.plan import read_plan

FENCE = "```"


def tasks(text: str) -> list[tuple[str, bool]]:
    return [(task.text, task.done) for task in read_plan(text).tasks]


@pytest.mark.parametrize("mark", ["- ", "* ", "+ ", "1. ", "12) ", "  - ", "\t* ", "        - ", "", "## "])
def test_a_task_stands_after_any_bullet(mark):
    assert tasks(f"{mark}[ ] a\n{mark}[x] b\n{mark}[X] c") == [("a", False), ("b", True), ("c", True)]


@pytest.mark.parametrize("box", ["[ ]", "[]", "[  ]", "[~]", "[/]"])
def test_empty_and_begun_boxes_are_open(box):
    assert tasks(f"- {box} a") == [("a", False)]


@pytest.mark.parametrize(
    "line", ["- [ ](x) a", "- [-] dropped", "- a [ ] b", "-[ ] a", "`[ ]` is open", "| [ ] | a |", "- [x]y", "[1] note"]
)
def test_other_brackets_are_no_tasks(line):
    assert tasks(line) == []


@pytest.mark.parametrize(
    ("opening", "closing"), [(FENCE, FENCE), ("~~~~ md", "~~~~~"), ("- ```", "  ```"), (FENCE, "")]
)
def test_code_fences_hold_neither_tasks_nor_headings(opening, closing):
    plan = read_plan(f"# A\n- [ ] a\n{opening}\n# B\n- [ ] b\n{closing}\n" + ("# C\n- [ ] c\n" if closing else ""))
    assert [task.text for task in plan.tasks] == (["a", "c"] if closing else ["a"])
    assert len(plan.sections) == (2 if closing else 1)


def test_a_fence_in_one_line_opens_nothing():
    assert tasks("``` not `code` ```\n- [ ] a") == [("a", False)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_kind_are_read(end):
    plan = read_plan(end.join(["# P", "", "## One", "- [x] a", "## Two", "- [ ] b", ""]))
    section = plan.next_section
    assert (section.above, section.text) == (("# P",), "## Two\n- [ ] b")
    assert section.open_tasks[0].line == 6


def test_a_section_lies_under_the_headings_above_its_level():
    plan = read_plan("# P\n## One\n### Deep\n- [x] a\n## Two\n### Inner\n- [ ] b\n### Later\n- [ ] c\n")
    assert plan.next_section.above == ("# P", "## Two")
    assert plan.next_section.text == "### Inner\n- [ ] b"


def test_what_precedes_every_heading_is_a_section():
    assert read_plan("- [ ] a\n# B\n- [ ] b").next_section.text == "- [ ] a"


def test_a_plan_that_is_done_has_no_next_section():
    assert read_plan("# A\n- [x] a").next_section is None
    assert read_plan("").sections == ()


@given(
    st.lists(st.sampled_from(["# ", "- ", "[ ]", "[x]", " ", "\n", "\r", "```", "~~~", "a", "1.", "\t", "\x85", "é"]))
)
def test_reading_never_fails_and_counts_every_task_once(pieces):
    text = "".join(pieces)
    plan = read_plan(text)
    assert sum(len(section.tasks) for section in plan.sections) == len(plan.tasks)
    assert len({task.line for task in plan.tasks}) == len(plan.tasks)
    assert (plan.next_section is None) == (not plan.open_tasks)


@given(st.text())
def test_any_text_is_a_plan_and_keeps_its_lines(text):
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = [line for section in read_plan(text).sections for line in section.text.split("\n") if line.strip()]
    assert kept == [line for line in plain.split("\n") if line.strip()]
