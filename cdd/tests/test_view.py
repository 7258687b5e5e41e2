from __future__ import annotations

import pytest


@pytest.fixture
def filled(cdd):
    """One active track whose files say what they are."""
    cdd.done("start", "a")
    for name in ("spec", "plan", "decisions", "current_state"):
        cdd.track("a", f"{name}.md").write_bytes(f"the {name}\n".encode())
    cdd.track("a", "plan.md").write_bytes(b"the plan\r\n- [x] one\r\n- [ ] two \x1b[31m\xff")
    return cdd


def test_without_a_name_the_tracks_are_listed_with_their_tasks(filled):
    filled.done("start", "b")
    rows = [line.split() for line in filled.done("view").splitlines()]
    assert rows[0] == ["NAME", "STARTED", "OPEN", "DONE"]
    assert [(row[0], *row[-2:]) for row in rows[1:]] == [("a", "1", "1"), ("b", "4", "0")]


def test_the_raw_list_is_the_names_alone(filled):
    filled.done("start", "b")
    assert filled.done("view", "--raw") == "a\nb\n"


def test_an_empty_list_says_how_to_start(cdd):
    cdd.done("init")
    cdd.done("delete", "setup")
    assert "cdd start" in cdd.done("view")
    assert "No track is archived" in cdd.done("view", "--archived")
    assert cdd.done("view", "--raw") == ""


def test_a_track_is_shown_whole_under_a_line_that_sums_it_up(filled):
    told = filled.done("view", "a")
    assert told.startswith("a: started 20")
    assert "1 open and 1 done tasks; 0 decisions" in told
    assert told.splitlines()[2:4] == ["next tasks:", "  line 3: two \\x1b[31m\ufffd"]
    assert [word for word in ("the spec", "the plan", "the decisions", "the current_state") if word not in told] == []


def test_the_next_tasks_of_the_plan_are_those_that_are_open(filled):
    filled.track("a", "plan.md").write_text("# P\n- [x] one\n" + "".join(f"- [ ] task {n}\n" for n in range(2, 9)))
    told = filled.done("view", "a").partition("--- ")[0]
    assert told.splitlines()[2:] == [
        "next tasks:", *(f"  line {n + 1}: task {n}" for n in range(2, 7)), "  and 2 more", "",
    ]  # fmt: skip
    filled.track("a", "plan.md").write_text("- [x] one\n")
    assert "next tasks: none is open" in filled.done("view", "a")
    filled.track("a", "plan.md").unlink()
    assert "next tasks: the plan has none" in filled.done("view", "a")
    for words in (["--plan"], ["--raw"]):
        assert "next tasks" not in filled.done("view", "a", *words)


@pytest.mark.parametrize(("option", "file"), [("--spec", "spec.md"), ("--plan", "plan.md"), ("--log", "decisions.md")])
def test_a_file_is_chosen_by_its_option(filled, option, file):
    for words in (["view", "a", option], ["view", option]):
        told = filled.done(*words)
        assert told.startswith(f"--- {file}\n")
        assert told.count("--- ") == 1


def test_several_files_can_be_chosen(filled):
    told = filled.done("view", "a", "--log", "--spec")
    assert told == "--- spec.md\n\nthe spec\n\n--- decisions.md\n\nthe decisions\n\n"


def test_raw_is_the_files_bytes_and_else_nothing_steers_the_terminal(filled):
    raw = filled("view", "a", "--plan", "--raw")
    assert raw.stdout_bytes == filled.track("a", "plan.md").read_bytes()
    told = filled.done("view", "a", "--plan")
    assert "\x1b" not in told and "\\x1b[31m\ufffd" in told


def test_a_missing_file_is_told_apart_from_an_empty_one(filled):
    filled.track("a", "spec.md").unlink()
    result = filled("view", "a", "--spec")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "'a' has no spec.md.\n")


def test_archived_tracks_are_listed_and_shown_by_name_and_by_folder(filled):
    filled.track("a", "plan.md").write_text("old")
    filled.done("archive", "a")
    filled.done("start", "a")
    filled.track("a", "plan.md").write_text("new")
    filled.done("archive", "a")
    old, new = filled.done("view", "--archived", "--raw").splitlines()
    assert filled.done("view", "a", "--archived", "--plan", "--raw") == "new"
    assert filled.done("view", old, "--archived", "--plan", "--raw") == "old"
    assert new in filled.done("view", "--archived")
    assert "archived 20" in filled.done("view", "a", "--archived")
    assert "it is archived" in filled.refused("view", "a")
    assert "no archived track 'b'" in filled.refused("view", "b", "--archived")


def test_a_chosen_file_of_several_tracks_asks_which(filled):
    filled.done("start", "b")
    assert "a, b" in filled.refused("view", "--plan")
    assert "With --archived, a file needs a track" in filled.refused("view", "--plan", "--archived")


def test_the_inbox_is_shown_or_said_to_be_empty(filled):
    assert "The inbox is empty" in filled.done("view", "--inbox")
    assert filled.done("view", "--inbox", "--raw") == ""
    filled.write(".context/inbox.md", "later\r\n")
    assert filled.done("view", "--inbox") == "--- inbox.md\n\nlater\n\n"
    assert filled("view", "--inbox", "--raw").stdout_bytes == b"later\r\n"


@pytest.mark.parametrize("more", [["a"], ["--archived"], ["--plan"]])
def test_the_inbox_belongs_to_no_track(filled, more):
    assert filled("view", "--inbox", *more).exit_code == 2


def test_without_a_workspace_it_says_how_to_make_one(cdd):
    assert "cdd init" in cdd.refused("view")
