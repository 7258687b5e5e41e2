"""`haft tools batch`: from a file of calls to what is printed, and the exit code."""

from __future__ import annotations

import json
import re

import pytest

from .conftest import until

WRITE = {"tool": "write_file", "args": {"path": "new", "content": "x\n"}}
READ = {"tool": "read_file", "args": {"path": "new"}}
TOUCH = {"tool": "shell", "args": {"command": "touch made"}}


@pytest.fixture
def batch(haft):
    """Writes calls into a file, and returns the words that make a batch of them."""

    def write(calls):
        (haft.workspace / "calls.json").write_text(json.dumps(calls))
        return ["tools", "batch", "calls.json"]

    return write


def test_an_array_of_calls_gives_the_outcomes_in_their_order(haft, batch):
    said = haft(
        *batch([{"id": "w", **WRITE}, READ, {"id": "r", "tool": "read_file", "args": {"path": "a.txt"}}]), "--approve"
    )
    assert said.code == 0
    outcomes = said.json["outcomes"]
    assert said.json["batch"].startswith("b_")
    assert [each["id"] for each in outcomes] == ["w", "2", "r"]
    assert [each["output"] for each in outcomes[1:]] == ["x\n", "one\ntwo\nthree\n"]


def test_lines_of_json_from_standard_input_are_calls_too(haft):
    lines = "\n".join(json.dumps(each) for each in (WRITE, READ)) + "\n\n"
    said = haft("tools", "batch", "-", "--approve", stdin=lines)
    assert (said.code, said.json["outcomes"][1]["output"]) == (0, "x\n")


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        ([READ], 1),
        ([{"tool": "read_file", "args": {"path": "a.txt"}}, {"tool": "nothing"}, READ], 2),
        ([WRITE, READ], 3),
        ([{"id": "1", **READ}, {"tool": "list_directory", "args": {"path": "."}, "after": ["1"]}], 1),
        ([{"tool": "shell", "args": {"command": "sleep 60"}, "timeout": 0.2}, READ], 4),
    ],
)
def test_the_exit_code_is_that_of_the_first_call_in_the_list_that_is_not_done(haft, batch, calls, code):
    assert haft(*batch(calls)).code == code


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "is not JSON"),
        ('{"tool": "x"}\n{tool}', "line 2 of standard input is not JSON"),
        ('[{"tol": "x"}]', "did you mean `tool`?"),
        ('[{"tool": "x", "arguments": {}}]', "did you mean `args`?"),
        ('{"id": "a", "tool": "x"}\n{"id": "a", "tool": "x"}', "the calls 1 and 2 have the same id `a`"),
        ("3", "must be a table"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_runs(haft, text, words):
    said = haft("tools", "batch", "-", stdin=text)
    assert said.code == 2 and words in said.err and not said.out
    assert haft("log", "--json").json == []


def test_a_file_that_is_not_there_is_named(haft):
    said = haft("tools", "batch", "none.json")
    assert said.code == 2 and "the calls in none.json cannot be read" in said.err


def test_a_dry_run_shows_groups_and_reasons_and_calls_nothing(haft, batch):
    said = haft(*batch([WRITE, READ, {"tool": "read_file", "args": {"path": "a.txt"}}]), "--dry-run")
    assert said.json["groups"] == [["1", "3"], ["2"]]
    assert said.json["calls"][1]["waitsFor"] == [
        {"id": "1", "reason": "it may read what the earlier call may write: new"}
    ]
    assert haft("log", "--json").json == []


def test_a_stream_has_every_event_of_every_call(haft, batch):
    said = haft(*batch([{"id": "w", **WRITE}, {"id": "r", **READ}]), "--approve", "--stream")
    events = [json.loads(line) for line in said.out.splitlines()]
    assert len({event["batch"] for event in events}) == 1
    assert [event["id"] for event in events if event["type"] == "outcome"] == ["w", "r"]
    assert {event["status"] for event in events if event["id"] == "r"} == {"queued", "in-progress", "done"}


def test_a_batch_is_undone_and_redone_from_another_process(haft, batch):
    edit = {"tool": "edit_file", "args": {"path": "a.txt", "old_string": "two", "new_string": "2"}}
    name = haft(*batch([WRITE, edit, TOUCH]), "--approve").json["batch"]
    assert (haft.workspace / "a.txt").read_text() == "one\n2\nthree\n"
    planned = haft("undo", name, "--dry-run", "--json").json
    assert sorted(step["path"] for step in planned["plan"]) == ["a.txt", "made", "new"]
    assert haft("undo", name).code == 0
    assert sorted(path.name for path in haft.workspace.iterdir()) == ["a.txt", "calls.json"]
    assert (haft.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert haft("undo", name).code == 2
    assert haft("redo", name).code == 0
    assert (haft.workspace / "new").exists() and (haft.workspace / "made").exists()
    unknown = haft("undo", "b_000000000000000000000000")
    assert unknown.code == 2 and "b_000000000000000000000000" in unknown.err


def test_a_batch_is_cancelled_from_another_process(haft, batch, ended):
    sleep = {"id": "s", "tool": "shell", "args": {"command": "sleep 600"}}
    running = ended(haft.begin(*batch([sleep, {**TOUCH, "after": ["s"]}]), "--approve"))
    run = until(lambda: next(iter(haft("log", "--status", "in-progress", "--json").json), None))
    assert run["batch"].startswith("b_")
    answers = haft("cancel", run["batch"], "--json").json
    assert {answer["status"] for answer in answers} == {"cancelled"}
    out, _err = running.communicate(timeout=60)
    assert [each["error"]["code"] for each in json.loads(out)["outcomes"]] == ["cancelled", "cancelled"]
    assert not (haft.workspace / "made").exists()


def test_the_id_is_printed_on_stderr_when_the_batch_starts(haft, batch, terminal):
    said = haft(*batch([READ]))
    assert said.err.splitlines()[0] == f"batch {said.json['batch']}"
    assert haft(*batch([READ]), "--quiet").err == ""
    here = terminal(*batch([{"tool": "shell", "args": {"command": "sleep 600"}}]), "--approve", NO_COLOR="1")
    here.until("batch b_")
    here.until("\n")
    name = re.search(r"batch (b_\w+)\n", here.seen)[1]
    until(lambda: haft("cancel", name).code == 0)  # The calls are recorded a moment later.
    assert here.end() == 130


def test_no_cache_and_isolation_hold_for_all_calls(haft, batch):
    words = batch([{"tool": "search", "args": {"pattern": "two"}}] * 2)
    until(lambda: haft(*words).json["outcomes"][0]["cached"])
    assert [each["cached"] for each in haft(*words, "--no-cache").json["outcomes"]] == [False, False]
    refused = haft(*batch([READ]), "--isolation", "none")
    assert refused.code == 2 and "`--isolation` is `snapshot` or `serial`, not `none`" in refused.err


ASKED = "calls? [y/N, numbers, e(ach), ?] "


def test_the_person_sees_all_calls_and_answers_for_all(haft, batch, terminal):
    here = terminal(*batch([WRITE, {"tool": "read_file", "args": {"path": "a.txt"}}, TOUCH]), NO_COLOR="1")
    here.until(ASKED)
    assert "Approve these 2 calls?" in here.seen
    assert "call 1 of 2:\nwrite_file needs approval" in here.seen and "call 2 of 2:\nshell needs approval" in here.seen
    assert "path: new" in here.seen and "command: touch made" in here.seen
    here.type("y\n")
    assert here.end() == 0
    assert (haft.workspace / "new").exists() and (haft.workspace / "made").exists()
    assert "2: read_file done\none\ntwo\nthree\n" in here.seen
    assert "3 of 3 calls of the batch are done" in here.seen


@pytest.mark.parametrize("stream", [[], ["--stream"]], ids=["outcomes", "stream"])
def test_nothing_is_printed_into_the_question(haft, batch, terminal, stream):
    haft("permissions", "add", "allow", "shell", "--match", "command=sleep *")
    here = terminal(*batch([{"id": "s", "tool": "shell", "args": {"command": "sleep 1"}}, WRITE, TOUCH]), *stream)
    here.until(ASKED)
    until(lambda: haft("log", "--status", "done", "--json").json)
    here.type("y\n")
    assert here.end() == 0
    assert f"{ASKED}y" in here.seen
    assert "done" in here.seen.partition(ASKED)[2], "what ended meanwhile is printed after the answer"


def test_the_person_answers_for_some_and_each(haft, batch, terminal):
    here = terminal(*batch([WRITE, TOUCH, {"tool": "shell", "args": {"command": "touch other"}}]))
    here.until(ASKED)
    here.type("7\n")
    here.until("`7` is not an answer here")
    here.until(ASKED)
    here.type("1 3\n")
    assert here.end() == 3
    assert sorted(path.name for path in haft.workspace.iterdir()) == ["a.txt", "calls.json", "new", "other"]


def test_the_person_can_answer_each_call_on_its_own(haft, batch, terminal):
    here = terminal(*batch([TOUCH, {"tool": "shell", "args": {"command": "touch other"}}]))
    here.until(ASKED)
    here.type("e\n")
    here.until("Approve shell? [")
    here.until("] ")
    here.type("n\n")
    here.until("Approve shell? [")
    here.until("] ")
    here.type("y\n")
    assert here.end() == 3
    assert (haft.workspace / "other").exists() and not (haft.workspace / "made").exists()


def test_enter_rejects_all_calls(haft, batch, terminal):
    here = terminal(*batch([WRITE, TOUCH]))
    here.until(ASKED)
    here.type("\n")
    assert here.end() == 3
    assert sorted(path.name for path in haft.workspace.iterdir()) == ["a.txt", "calls.json"]


def test_the_inbox_shows_a_batch_together_and_takes_one_answer(haft, batch, ended):
    def waiting():
        found = haft("inbox", "--json").json
        return found if len(found) == 2 else None

    running = ended(haft.begin(*batch([WRITE, TOUCH, READ]), "--wait", "100"))
    first, second = until(waiting)
    assert first["batch"] == second["batch"] and first["batch"].startswith("b_")
    listed = haft("inbox").out
    assert f"batch {first['batch']}: 2 calls wait; `haft approve {first['batch']}`" in listed
    refused = haft("approve", first["batch"], "--always")
    assert refused.code == 2 and "an answer to all of them holds once" in refused.err
    answers = haft("approve", first["batch"], "--json").json
    assert {answer["id"] for answer in answers} == {first["id"], second["id"]}
    out, _err = running.communicate(timeout=60)
    assert [each["status"] for each in json.loads(out)["outcomes"]] == ["done"] * 3
    gone = haft("approve", first["batch"])
    assert gone.code == 2 and first["batch"] in gone.err


def test_one_call_of_a_batch_can_be_answered_alone(haft, batch, ended):
    def waiting():
        found = haft("inbox", "--json").json
        return found if len(found) == 2 else None

    running = ended(haft.begin(*batch([WRITE, TOUCH]), "--wait", "100"))
    first, _second = until(waiting)
    assert haft("approve", first["id"]).code == 0
    assert haft("reject", first["batch"], "--message", "not this one").code == 0
    out, _err = running.communicate(timeout=60)
    outcomes = {each["run"]: each for each in json.loads(out)["outcomes"]}
    assert outcomes.pop(first["run"])["status"] == "done"
    (other,) = outcomes.values()
    assert other["status"] == "rejected-by-user" and "not this one" in other["error"]["message"]
