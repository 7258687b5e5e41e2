"""`haft changes`: what runs hold back, settled by other processes than the one that made it."""

from __future__ import annotations

import sys

import pytest

from haft import ToolService

from .conftest import short

LEFT_BEHIND = """
import os, threading, time

class Plugin:
    def get_tool_schemas(self, state):
        parameters = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
        return [{"name": "leave", "description": "Leave a thread behind.", "parameters": parameters}]

    def execute_tool(self, name, arguments, state):
        place = arguments["place"]
        def later():
            while not os.path.exists(os.path.join(place, "go")):
                time.sleep(0.002)
            with open("late.txt", "w") as file:
                file.write("late\\n")
            open(os.path.join(place, "done"), "w").close()
        threading.Thread(target=later, daemon=True).start()
"""


def tried(haft, path="n.txt", content="x\n"):
    words = ["tools", "use", "write_file", "--path", path, "--content", content, "--try", "-q", "--only", "run"]
    return haft(*words).out.strip()


def state(haft, run):
    return haft("show", run, "--json").json["outcome"]["changes"]["state"]


def test_what_is_held_is_listed_with_its_reason(haft):
    assert haft("changes", "list", "--json").json == []
    assert not haft.home.exists()
    run = tried(haft)
    (one,) = haft("changes", "list", "--json").json
    assert (one["run"], one["tool"], one["files"], one["reason"]) == (run, "write_file", 1, "it is a trial run")
    assert one["workspace"] == str(haft.workspace)
    assert haft("changes", "list").out.split("  ")[0] == short(run)
    assert haft("changes", "list", "-w", str(haft.home), "--json").json == []
    assert " done, held " in haft("log").out
    shown = haft("show", run).out
    assert "changes: held" in shown and f"`haft changes drop {short(run)}`" in shown


def test_apply_commits_and_can_be_undone(haft):
    run = tried(haft)
    assert not (haft.workspace / "n.txt").exists()
    done = haft("changes", "apply", run[:-1])
    assert (done.code, done.out) == (0, f"{short(run)}: 1 path applied\n")
    assert done.err == f"`haft undo {short(run)}` takes them back\n"
    assert (haft.workspace / "n.txt").read_text() == "x\n"
    assert state(haft, run) == "committed"
    assert haft("changes", "list").err == "no run has held changes\n"
    again = haft("changes", "apply", run)
    assert again.code == 2 and f"{short(run)} has no held changes: its changes are applied" in again.err
    assert haft("undo", "--json").json["runs"] == [run]


def test_drop_discards(haft):
    run = tried(haft)
    assert haft("changes", "drop", run).out == f"{short(run)}: 1 path dropped\n"
    assert not (haft.workspace / "n.txt").exists()
    assert state(haft, run) == "discarded"
    assert "were discarded" in haft("undo", run).err
    assert "its changes are dropped" in haft("changes", "apply", run).err
    gone = haft("diff", run)
    assert gone.code == 1 and "they were discarded" in gone.err


def test_apply_overwrites_nothing_that_changed_since_until_it_was_looked_at(haft):
    run = tried(haft, "a.txt")
    (haft.workspace / "a.txt").write_text("a person\n")
    refused = haft("changes", "apply", run)
    assert (refused.code, refused.out) == (5, "")
    assert "conflict: a.txt, changed outside of haft" in refused.err
    assert (haft.workspace / "a.txt").read_text() == "a person\n"
    assert state(haft, run) == "held"
    assert "-a person\n+x\n" in haft("diff", run).out, "the diff is one against what is there now"
    done = haft("changes", "apply", run, "--json").json
    assert (done["run"], done["state"], done["files"], done["conflicts"]) == (run, "committed", 1, [])
    assert haft("show", done["settledBy"], "--json").json["tool"] == "apply"
    haft("undo", run)
    assert (haft.workspace / "a.txt").read_text() == "a person\n"


def test_a_conflict_in_json(haft):
    run = tried(haft, "a.txt")
    (haft.workspace / "a.txt").write_text("a person\n")
    refused = haft("changes", "apply", run, "--json")
    assert refused.code == 5
    assert (refused.json["state"], refused.json["conflicts"]) == ("held", [{"path": "a.txt", "by": "outside"}])


def test_a_protected_path_is_held_and_says_how_to_go_on(haft):
    said = haft("tools", "use", "shell", "--command", "mkdir -p .git/hooks; echo x > .git/hooks/pre-push", "--approve")
    assert said.code == 1 and said.json["changes"]["state"] == "held"
    run = said.json["run"]
    assert said.err.count(f"haft changes apply {short(run)}") == 1
    assert not (haft.workspace / ".git").exists()
    assert haft("changes", "apply", run).code == 0
    assert (haft.workspace / ".git" / "hooks" / "pre-push").exists()


def test_runs_that_hold_nothing_say_why(haft):
    reading = haft("tools", "use", "read_file", "--path", "a.txt").json["run"]
    for verb in ("apply", "drop"):
        said = haft("changes", verb, reading)
        assert (said.code, said.err) == (2, f"error: there is nothing to {verb}: {short(reading)} changed nothing\n")
        assert "there is no run called" in haft("changes", verb, "r_00000").err


def test_what_a_killed_host_was_committing_is_shown_as_it_ended(haft):
    """Its document was written before the end; what became of its changes stands in the ledger alone."""
    from haft.runs import RunRecord
    from haft.service.changes import with_current_changes
    from haft.storage import StateHome, open_stores

    run = haft("tools", "use", "write_file", "--path", "n", "--content", "x", "--approve").json["run"]
    document = haft("show", run, "--json").json
    record = {"run": run, "changes": {**document["outcome"]["changes"], "files": [], "state": "none"}}
    ledger = open_stores(StateHome(str(haft.home))).connect().ledger
    found = with_current_changes(ledger, RunRecord(record, {}))
    ledger.close()
    assert found.record["changes"] == document["outcome"]["changes"]


@pytest.mark.skipif(sys.platform != "linux", reason="there are no layers elsewhere")
def test_what_a_process_wrote_between_calls_is_settled_by_the_name_that_was_said(
    haft, tmp_path, eventually, monkeypatch
):
    monkeypatch.setattr("haft.sources.brief_run.DESCRIBE_SECONDS", 60.0)
    plugin, place = tmp_path / "plugin.py", tmp_path / "signals"
    plugin.write_text(LEFT_BEHIND)
    place.mkdir()
    entry = {"plugin": f"path:{plugin}", "grant": {"write": [".", str(place)]}}
    with ToolService.open_sync(
        haft.workspace,
        home=haft.home,
        approver=lambda request: True,
        installed=False,
        settings={"plugins": [entry]},
    ) as service:
        outcome = service.call("leave", {"place": str(place)}).wait()
        assert outcome.ok, outcome.error
        (place / "go").touch()
        eventually((place / "done").exists)
    (held,) = haft("changes", "list", "--json").json
    assert (held["tool"], held["reason"]) == (None, "its process wrote it between two calls")
    run = held["run"]
    assert "+late" in haft("diff", run).out
    shown = haft("show", run)
    assert shown.code == 2 and "is not a call" in shown.err and f"`haft diff {run}`" in shown.err
    assert haft("changes", "apply", run[:-1]).code == 0
    assert (haft.workspace / "late.txt").read_text() == "late\n"
    assert haft("undo", run).code == 0
    assert not (haft.workspace / "late.txt").exists()
    assert haft("changes", "drop", run).code == 2
    assert haft("diff", "r_000000000000").code == 2


def held_tree(haft):
    """A run that holds a change of every kind, and what the workspace was before."""
    (haft.workspace / "old").mkdir()
    (haft.workspace / "old" / "gone.txt").write_text("gone\n")
    command = "mkdir -p new/deep; echo x > new/deep/x; echo y > new/y; ln -s y new/l; rm old/gone.txt; echo z >> a.txt"
    return haft("tools", "use", "shell", "--command", command, "--try", "-q", "--only", "run").out.strip()


def files(haft):
    found = (path for path in haft.workspace.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(str(path.relative_to(haft.workspace)) for path in found)


def test_a_part_of_the_changes_is_applied_and_the_rest_stays_held(haft):
    run = held_tree(haft)
    done = haft("changes", "apply", run, "new/deep", "a.txt", "--json").json
    assert (done["state"], done["files"], done["left"]) == ("committed", 4, 3)
    assert files(haft) == ["a.txt", "new/deep/x", "old/gone.txt"]
    assert (haft.workspace / "a.txt").read_text().endswith("z\n")
    assert state(haft, run) == "held"
    shown = haft("diff", run, "--json").json
    assert {part["state"]: sorted(part["files"]) for part in shown["parts"]} == {
        "committed": ["a.txt", "new", "new/deep", "new/deep/x"],
        "held": ["new/l", "new/y", "old/gone.txt"],
    }
    assert len(shown["files"]) == 7, "each path once"
    (held,) = haft("changes", "list", "--json").json
    assert (held["run"], held["files"]) == (run, 3)
    assert haft("diff", done["settledBy"], "--json").json["state"] == "committed"
    assert haft("changes", "apply", run).code == 0
    assert files(haft) == ["a.txt", "new/deep/x", "new/l", "new/y"]


@pytest.mark.parametrize("which", ["the part", "the run"])
def test_a_part_that_was_applied_can_be_undone_and_the_rest_applied_afterwards(haft, which):
    run = held_tree(haft)
    done = haft("changes", "apply", run, "new/deep/x", "--json").json
    assert haft("undo", done["settledBy"] if which == "the part" else run).code == 0
    assert files(haft) == ["a.txt", "old/gone.txt"] and not (haft.workspace / "new").exists()
    assert haft("changes", "apply", run).code == 0
    assert files(haft) == ["a.txt", "new/l", "new/y"] and not (haft.workspace / "new" / "deep").exists()


def test_a_deletion_alone_and_all_paths_can_be_applied(haft):
    run = held_tree(haft)
    assert haft("changes", "apply", run, "old").code == 0
    assert files(haft) == ["a.txt"]
    everything = haft("changes", "apply", run, ".", "--json").json
    assert everything["left"] == 0 and state(haft, run) == "committed"
    assert files(haft) == ["a.txt", "new/deep/x", "new/l", "new/y"]


def test_a_path_is_relative_to_the_current_directory(haft):
    run = held_tree(haft)
    (haft.workspace / "here").mkdir()
    assert haft("changes", "apply", run, "../a.txt", cwd=haft.workspace / "here").code == 0
    assert (haft.workspace / "a.txt").read_text().endswith("z\n")
    outside = haft("changes", "apply", run, "../../x", cwd=haft.workspace / "here")
    assert outside.code == 2 and "is not in the workspace" in outside.err


def test_a_path_that_the_run_does_not_change_is_refused(haft):
    run = held_tree(haft)
    done = haft("changes", "apply", run, "new/yy")
    assert done.code == 2 and "holds no change of `new/yy`" in done.err and "did you mean `new/y`?" in done.err
    assert files(haft) == ["a.txt", "old/gone.txt"] and state(haft, run) == "held"


def test_a_part_in_conflict_is_not_applied_and_can_be_applied_the_second_time(haft):
    run = held_tree(haft)
    (haft.workspace / "a.txt").write_text("mine\n")
    done = haft("changes", "apply", run, "a.txt")
    assert done.code == 5 and (haft.workspace / "a.txt").read_text() == "mine\n"
    assert haft("changes", "apply", run, "new").code == 0, "other paths are not in the way"
    assert haft("changes", "apply", run, "a.txt").code == 0
    assert (haft.workspace / "a.txt").read_text().endswith("z\n")


def test_dropping_the_rest_leaves_the_part_that_was_applied(haft):
    run = held_tree(haft)
    assert haft("changes", "apply", run, "new/y").code == 0
    assert haft("changes", "drop", run).code == 0
    assert files(haft) == ["a.txt", "new/y", "old/gone.txt"]
    assert (haft.workspace / "new" / "y").stat().st_nlink == 1


def two_held(haft, *options):
    """A run that holds two new files."""
    words = ["tools", "use", "shell", "--command", "echo 1 > one; echo 2 > two", "--try", "-q", "--only", "run"]
    return haft(*words, *options).out.strip()


def report(haft, *words):
    return haft("log", "-w", ".", "--stat", "--json", *words).json


def test_a_part_that_was_applied_counts_for_the_run_that_made_it(haft):
    run = two_held(haft, "--thread", "theirs")
    part = haft("changes", "apply", run, "one", "--json").json["settledBy"]
    found = report(haft, "--thread", "theirs")
    assert (found["files"], found["undoable"], found["held"]) == ({"one": [run]}, [run], [run])
    (line,) = haft("blame", "one", "--json").json
    assert (line["run"], line["thread"], line["appliedBy"]) == (run, "theirs", part)
    words = haft("blame", "one").out
    assert words.startswith(short(run)) and f", applied by {short(part)} " in words
    shown = haft("show", run)
    assert f"create one: applied by {short(part)}\n" in shown.out and "create two: held\n" in shown.out
    assert "haft undo" in shown.out and "haft changes apply" in shown.out
    diff = haft("diff", run)
    assert "+1\n" in diff.out and "+2\n" in diff.out
    assert f"applied by {short(part)}: one\n" in diff.err and "held: two\n" in diff.err

    assert haft("changes", "apply", run, "two").code == 0
    found = report(haft)
    assert (found["files"], found["held"]) == ({"one": [run], "two": [run]}, [])
    assert haft("blame", "two", "--json").json[0]["appliedBy"] is None
    assert haft("diff", "--stat", run).out.splitlines()[:2] == [" one | 1 +", " two | 1 +"]
    assert "create two: applied\n" in haft("show", run).out
    assert haft("undo", run).code == 0 and files(haft) == ["a.txt"]
    found = report(haft)
    assert (found["files"], found["undoable"], found["undone"]) == ({}, [], [run])
    undone = haft("diff", run)
    assert "+1\n" in undone.out and f"applied by {short(part)}, undone: one\n" in undone.err


def test_an_undo_of_the_thread_takes_back_a_part_that_someone_applied(haft):
    run = two_held(haft, "--thread", "theirs")
    assert haft("changes", "apply", run, "one").code == 0
    assert haft("undo", "--thread", "theirs").code == 0
    assert files(haft) == ["a.txt"]


def test_paths_that_were_dropped_are_told_from_those_applied(haft):
    run = two_held(haft)
    part = haft("changes", "apply", run, "one", "--json").json["settledBy"]
    assert haft("changes", "drop", run).code == 0
    assert report(haft)["files"] == {"one": [run]}
    shown = haft("show", run)
    assert f"create one: applied by {short(part)}\n" in shown.out and "create two: dropped\n" in shown.out
    assert haft("show", run, "--json").json["parts"] == [
        {"run": part, "state": "committed", "files": ["one"]},
        {"run": run, "state": "discarded", "files": ["two"]},
    ]
    diff = haft("diff", run)
    assert "+1\n" in diff.out and "+2" not in diff.out and "dropped: two\n" in diff.err
    assert haft("undo", run).code == 0 and files(haft) == ["a.txt"]


def test_a_merge_is_shown_and_applied_only_with_yes(haft):
    lines = [f"{number}\n" for number in range(9)]
    file = haft.workspace / "n.txt"
    file.write_text("".join(lines))
    run = tried(haft, content="".join(["first\n", *lines[1:]]))
    file.write_text("".join([*lines[:-1], "last\n"]))
    assert haft("changes", "apply", run).code == 5
    shown = haft("changes", "apply", run, "--merge")
    assert shown.code == 3 and "+first\n" in shown.out and "last" not in shown.out
    assert f"`haft changes apply {short(run)} --merge --yes`" in shown.err
    told = haft("changes", "apply", run, "--merge", "--json")
    assert told.code == 0 and told.json["merged"] == [{"path": "n.txt"}] and told.json["settledBy"] is None
    assert "+first\n" in told.json["diff"] and state(haft, run) == "held"
    done = haft("changes", "apply", run, "--merge", "--yes")
    assert done.code == 0 and f"{short(run)}: 1 path applied, 1 path merged\n" in done.out
    assert file.read_text() == "".join(["first\n", *lines[1:-1], "last\n"])
    assert haft("undo", run).code == 0
    assert file.read_text() == "".join([*lines[:-1], "last\n"])


def test_what_cannot_be_merged_is_shown_with_markers_and_not_applied(haft):
    (haft.workspace / "n.txt").write_text("1\n")
    run = tried(haft, content="2\n")
    (haft.workspace / "n.txt").write_text("3\n")
    refused = haft("changes", "apply", run, "--merge", "--yes")
    assert refused.code == 5 and "+<<<<<<< workspace" in refused.out
    assert "in conflict: n.txt: both sides changed the same lines" in refused.err
    assert "nothing was applied: `n.txt` is still in conflict" in refused.err
    assert (haft.workspace / "n.txt").read_text() == "3\n"
    assert "`--yes` needs `--merge`" in haft("changes", "apply", run, "--yes").err
