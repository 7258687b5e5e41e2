"""`haft undo` and `haft redo`, one process each."""

from __future__ import annotations

import pytest

from .conftest import short


def shell(haft, command, *words):
    return haft("tools", "use", "shell", "--command", command, "--approve", "--only", "run", *words).out.strip()


def test_undo_takes_back_and_redo_brings_back(haft):
    run = shell(haft, "echo more >> a.txt; mkdir new; echo q > new/q; ln -s a.txt link")
    undone = haft("undo", run[:-2])
    assert (undone.code, undone.err) == (0, "")
    first, *paths = undone.out.splitlines()
    assert first.startswith(f"{short(run)} undone by r_")
    assert paths == ["  restore a.txt", "  delete  link", "  delete  new", "  delete  new/q"]
    assert [path.name for path in haft.workspace.iterdir()] == ["a.txt"]
    assert (haft.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    redone = haft("redo", run)
    assert redone.out.splitlines()[1:] == ["  rewrite a.txt", "  create  link", "  create  new", "  create  new/q"]
    assert (haft.workspace / "new" / "q").read_text() == "q\n"


def test_undo_alone_steps_back_through_the_runs_of_this_user(haft):
    first, second = shell(haft, "echo 1 > x"), shell(haft, "echo 2 > x")
    haft("tools", "use", "read_file", "--path", "a.txt")
    assert haft("undo", "--json").json["runs"] == [second]
    assert (haft.workspace / "x").read_text() == "1\n"
    assert haft("undo", "--json").json["runs"] == [first]
    assert not (haft.workspace / "x").exists()
    last = haft("undo")
    assert last.code == 2 and "there is nothing to undo" in last.err


def test_redo_without_a_run_names_the_one_that_was_undone_last(haft):
    assert "hint: `haft log` shows the runs" in haft("redo").err
    first, second = shell(haft, "echo 1 > x"), shell(haft, "echo 2 > y")
    haft("undo", second)
    haft("undo", first)
    said = haft("redo")
    assert said.code == 2 and f"hint: `haft redo {short(first)}` redoes the last run" in said.err
    assert not (haft.workspace / "x").exists(), "it is named, not done"


def test_what_a_forced_undo_replaced_is_brought_back_by_the_undo_that_it_names(haft):
    run = shell(haft, "echo 1 > x")
    (haft.workspace / "x").write_text("mine\n")
    said = haft("undo", run, "--force")
    assert said.code == 0 and not (haft.workspace / "x").exists()
    command, _, words = said.err.strip().removeprefix("`haft ").partition("`")
    assert words == " brings back the content that `--force` replaced"
    assert haft(*command.split()).code == 0
    assert (haft.workspace / "x").read_text() == "mine\n"


def test_a_dry_run_says_what_it_would_do_and_does_nothing(haft):
    run = shell(haft, "rm a.txt")
    said = haft("undo", "--dry-run", "--json")
    plan = [{"path": "a.txt", "action": "create"}]
    assert said.json == {"runs": [run], "plan": plan, "conflicts": [], "undo": None}
    assert haft("undo", "--dry-run").out == f"would undo {short(run)}\n  create  a.txt\n"
    assert not (haft.workspace / "a.txt").exists()
    assert len(haft("log", "--json").json) == 1, "looking is no run"
    done = haft("undo", "--json").json
    assert (done["runs"], done["plan"], done["conflicts"]) == ([run], plan, [])
    assert haft("show", done["undo"], "--json").json["tool"] == "undo"


def test_a_conflict_names_the_other_run_and_nothing_is_touched(haft):
    first, later = shell(haft, "echo 1 > x"), shell(haft, "echo 2 > x")
    refused = haft("undo", first, "--json")
    assert refused.code == 5
    shape = {"runs": [first], "plan": [{"path": "x", "action": "delete"}], "undo": None}
    assert refused.json == {**shape, "conflicts": [{"path": "x", "by": later}]}
    (haft.workspace / "x").write_text("a person\n")
    refused = haft("undo", first)
    assert (refused.code, refused.out) == (5, "")
    assert refused.err.splitlines() == [
        "conflict: x, changed outside of haft",
        f"to undo {short(first)} means:",
        "  delete  x",
        f"error: {short(first)} cannot be undone: a path was changed again since; nothing was touched",
        "hint: use `--force`: haft keeps the content that it replaces",
    ]
    looked = haft("undo", later, "--dry-run", "--json")
    assert looked.code == 5 and looked.json["conflicts"] == [{"path": "x", "by": "outside"}]
    assert (haft.workspace / "x").read_text() == "a person\n"
    assert haft("undo", first, "--force").code == 0
    assert not (haft.workspace / "x").exists()


def test_the_one_that_came_later_is_named_in_the_hint(haft):
    first, later = shell(haft, "echo 1 > x"), shell(haft, "echo 2 > x")
    said = haft("undo", first).err
    assert f"conflict: x, changed by {short(later)}" in said
    assert f"hint: `haft undo {short(later)}` first, or use `--force`" in said
    both = haft("undo", first, later, "--json").json
    assert sorted(both["runs"]) == sorted([first, later])


def test_what_others_put_into_a_directory_stays(haft):
    run = shell(haft, "mkdir d; echo 1 > d/mine")
    (haft.workspace / "d" / "yours").write_text("y")
    assert haft("undo").out.splitlines()[1:] == ["  delete  d/mine", "  keep    d: it holds files of others"]
    assert [path.name for path in (haft.workspace / "d").iterdir()] == ["yours"]
    assert haft("show", run, "--json").json["outcome"]["changes"]["state"] == "undone"


def test_a_thread_is_undone_as_one(haft):
    one, other = shell(haft, "echo 1 > x", "--thread", "T-1"), shell(haft, "echo 2 > y", "--thread", "T-1")
    kept = shell(haft, "echo 3 > z", "--thread", "T-2")
    assert haft("undo", "--thread", "T-1", "--json").json["runs"] == [one, other]
    assert {path.name for path in haft.workspace.iterdir()} == {"a.txt", "z"}
    assert "nothing to undo in thread T-1" in haft("undo", "--thread", "T-1").err
    assert "not both" in haft("undo", kept, "--thread", "T-2").err


def test_a_run_is_found_from_any_directory(haft, tmp_path):
    run = shell(haft, "echo 1 > x")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert haft("undo", "--dry-run", cwd=elsewhere).code == 2
    told = haft("undo", run[:-2], cwd=elsewhere)
    assert told.code == 0 and not (haft.workspace / "x").exists()
    assert told.err == f"the run is of another workspace: {haft.workspace}\n"
    assert haft("redo", run, "--json", cwd=elsewhere).err == told.err
    assert haft("undo", run).err == "", "here it goes without saying"


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_what_cannot_be_reversed_says_why(haft, verb):
    reading = haft("tools", "use", "read_file", "--path", "a.txt").json["run"]
    said = haft(verb, reading)
    assert said.code == 2
    assert said.err == f"error: there is nothing to {verb}: {short(reading)} changed nothing\n"
    off = {"HAFT_CHANGES_ENGINE": "off"}
    untracked = haft("tools", "use", "shell", "--command", "echo > x", "--approve", **off).json["run"]
    assert "are not known (`changes.engine` is `off`)" in haft(verb, untracked).err
    assert "there is no run called" in haft(verb, "r_0000000").err
    held = haft("tools", "use", "write_file", "--path", "h", "--content", "x", "--try", "-q").json["run"]
    assert f"`haft changes apply {short(held)}`" in haft(verb, held).err


def test_without_state_there_is_nothing_to_undo_and_nothing_is_made(haft):
    assert (haft("undo").code, haft("undo", "r_12345").code, haft("redo", "r_12345").code) == (2, 2, 2)
    assert not haft.home.exists()


def test_an_undo_is_undone_by_its_own_name_and_not_redone(haft):
    run = shell(haft, "echo 1 > x")
    undo = haft("undo", "--json").json["undo"]
    said = haft("redo", undo)
    assert said.code == 2 and f"`haft undo {short(undo)}` undoes it" in said.err
    assert "is already undone" in haft("undo", run).err
    assert haft("undo", undo).code == 0 and " done " in haft("log", "--tool", "shell").out
    assert "needs a run that was undone" in haft("redo", shell(haft, "echo 2 > y")).err


def test_log_and_show_tell_what_became_of_a_run(haft):
    run = shell(haft, "echo 1 > x")
    undo = haft("undo", "--json").json["undo"]
    newest, oldest = haft("log").out.splitlines()
    assert newest.split()[0] == short(undo) and "undo" in newest
    assert oldest.split()[0] == short(run) and " done, undone " in oldest
    assert haft("log", "--json", "--limit", "2").json[1]["outcome"]["changes"]["state"] == "undone"
    assert [one["id"] for one in haft("log", "--path", "x", "--json").json] == [undo, run]
    shown = haft("show", run).out
    assert "changes: undone, by " in shown and f"`haft redo {short(run)}`" in shown
    haft("redo", run)
    assert haft("show", run, "--json").json["outcome"]["changes"]["state"] == "committed"
    assert "undone: not in the workspace" not in haft("diff", run).err


def test_long_lists_are_cut_for_people_and_whole_for_programs(haft):
    shell(haft, "for i in $(seq 60); do echo > $i; done")
    assert haft("undo", "--dry-run").out.splitlines()[-1] == "  and 10 more"
    assert len(haft("undo", "--dry-run", "--json").json["plan"]) == 60
