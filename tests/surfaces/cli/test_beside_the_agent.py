"""A person beside an agent: answers as calls come, follows a thread, undoes its last minutes, reads a report."""

from __future__ import annotations

import json

import pytest

from .conftest import short, until

WRITE = ["tools", "use", "shell", "--wait", "100", "--json", "--command"]


@pytest.fixture
def asks(haft, ended):
    """A call that waits, in a process of its own, and its request."""

    def ask(command, *words):
        known = {one["id"] for one in haft("inbox", "--all", "--json").json}
        process = ended(haft.start(*WRITE, command, *words))
        return process, until(lambda: [one for one in haft("inbox", "--json").json if one["id"] not in known])[0]

    return ask


def outcome_of(process):
    return json.loads(process.communicate(timeout=60)[0])


def call(haft, command, thread="t"):
    return haft("use", "shell", "--command", command, "--thread", thread, "--approve", "--json").json


def test_a_key_chooses_and_enter_approves(haft, terminal, asks):
    process, _ = asks("touch made")
    screen = terminal("inbox", "--watch")
    screen.until("Enter confirms")
    screen.type("y")
    screen.until("approve shell? Enter confirms")
    screen.type("\r")
    screen.until("is approved")
    assert outcome_of(process)["status"] == "done"
    assert (haft.workspace / "made").exists()
    late, _ = asks("touch later")
    screen.until("touch later")
    screen.type("n")
    screen.until("reject shell?")
    screen.type("\r")
    screen.until("is rejected")
    assert outcome_of(late)["status"] == "rejected-by-user"
    screen.type("q")
    assert screen.end() == 0
    assert screen.seen.count("touch made") == 1 and "needed approval" not in screen.seen, "the call is shown once"


@pytest.mark.parametrize(
    ("key", "label", "holds_elsewhere"), [("t", "approve in its thread", False), ("a", "approve always", True)]
)
def test_a_key_approves_later_calls_too_in_the_thread_or_always(haft, terminal, asks, key, label, holds_elsewhere):
    process, _ = asks("touch made", "--thread", "t")
    screen = terminal("inbox", "--watch")
    screen.until("t (in its thread) or a (always) also allows:")
    screen.until("t: approve in its thread, a: approve always, n: reject")
    screen.type(key)
    screen.until(f"{label} shell? Enter confirms")
    screen.type("\r")
    screen.until("is approved")
    assert outcome_of(process)["status"] == "done"
    screen.type("q")
    assert screen.end() == 0
    again = ["use", "shell", "--command", "touch made", "--json", "--thread"]
    assert haft(*again, "t").json["status"] == "done"
    elsewhere = haft(*again, "other").json
    assert (elsewhere["status"] == "done") == holds_elsewhere, elsewhere


def test_the_bell_rings_once_for_each_new_call(haft, terminal, asks):
    screen = terminal("inbox", "--watch")
    screen.until("waiting for calls")
    asks("touch one")
    screen.until("Enter confirms")
    asks("touch two")
    screen.until("\a")
    assert screen.seen.count("\a") == 2
    screen.type("s")
    screen.until("touch two")
    screen.type("q")
    screen.end()
    assert screen.seen.count("\a") == 2


def test_without_enter_nothing_is_answered_and_s_leaves_it_in_the_inbox(haft, terminal, asks):
    _, request = asks("touch made")
    screen = terminal("inbox", "--watch")
    screen.until("Enter confirms")
    screen.type("y")
    screen.until("approve shell?")
    screen.type("x")
    screen.until("was not confirmed")
    screen.type("s")
    screen.until("stays in the inbox")
    screen.type("q")
    screen.end()
    assert [one["id"] for one in haft("inbox", "--json").json] == [request["id"]]


def test_keys_typed_before_a_call_is_shown_do_not_count(haft, terminal, asks):
    screen = terminal("inbox", "--watch")
    screen.until("waiting for calls")
    screen.type("y\r")
    _, request = asks("touch made")
    screen.until("Enter confirms")
    screen.type("q")
    screen.end()
    assert [one["id"] for one in haft("inbox", "--json").json] == [request["id"]]


def test_keys_that_come_at_once_are_no_answer_and_haft_says_so(haft, terminal, asks):
    _, request = asks("touch made")
    screen = terminal("inbox", "--watch", TERM="xterm", NO_COLOR="")
    screen.until("Enter confirms")
    assert "x1b" not in screen.seen
    screen.type("y\r")
    screen.until("not answered: several keys came at once")
    assert [one["id"] for one in haft("inbox", "--json").json] == [request["id"]]


def test_a_call_answered_elsewhere_leaves_the_screen(haft, terminal, asks):
    process, request = asks("touch made")
    screen = terminal("inbox", "--watch")
    screen.until("Enter confirms")
    haft("reject", request["id"])
    screen.until("needs no answer any more")
    screen.type("q")
    screen.end()
    assert outcome_of(process)["status"] == "rejected-by-user"


def test_without_a_terminal_requests_come_as_lines_of_json(haft, ended, asks):
    watching = ended(haft.start("inbox", "--watch"))
    _, request = asks("touch made")
    assert json.loads(watching.stdout.readline())["id"] == request["id"]


def test_a_watched_thread_tells_of_each_call(haft, terminal):
    screen = terminal("watch", "--thread", "t", "--json")
    made = call(haft, "echo 1 > a")
    call(haft, "echo 2 > b", thread="other")
    last = call(haft, "echo 3 > c")
    screen.until(last["run"])
    assert made["run"] in screen.seen
    assert "echo 2" not in screen.seen


def test_a_watched_thread_tells_of_each_call_as_text(haft, terminal, asks):
    screen = terminal("watch", "--thread", "t")
    screen.until("waiting for calls of the thread t; Ctrl-C ends")
    process, request = asks("touch made", "--thread", "t")
    screen.until("blocked-on-user")
    screen.until("touch made")
    run = short(request["run"])
    screen.until(f"`haft approve {run}`, `haft reject {run}`")
    haft("reject", request["id"], "--message", "not now")
    assert outcome_of(process)["status"] == "rejected-by-user"
    screen.until("rejected-by-user")
    screen.until("not now")
    made = call(haft, "echo 1 > a")
    screen.until(f"{short(made['run'])}  done  shell  after ")
    screen.until("1 path committed")
    call(haft, "echo 2 > b", thread="other")
    screen.type("\x03")
    assert screen.end() == 130
    assert "echo 2" not in screen.seen


def test_watch_needs_a_run_or_a_thread(haft):
    assert haft("watch").code == 2
    assert haft("watch", "r_1234", "--thread", "t").code == 2


def test_what_a_thread_did_since_a_time_is_shown_and_undone(haft):
    call(haft, "echo 1 > a")
    call(haft, "echo 2 > b", thread="other")
    said = haft("undo", "--thread", "t", "--since", "5m")
    assert said.code == 0
    assert "delete  a" in said.err
    assert not (haft.workspace / "a").exists()
    assert (haft.workspace / "b").exists()
    nothing = haft("undo", "--thread", "t", "--since", "5m")
    assert (nothing.code, "nothing to undo in thread t since" in nothing.err) == (2, True)
    long_ago = haft("undo", "--thread", "t", "--since", "99999999999d")
    assert (long_ago.code, "since 1970-01-01" in long_ago.err) == (2, True)


def test_at_a_terminal_a_yes_is_needed(haft, terminal):
    call(haft, "echo 1 > a")
    screen = terminal("undo", "--since", "5m")
    screen.until("Undo? [y/N]")
    screen.type("n\n")
    screen.end()
    assert (haft.workspace / "a").exists()
    assert screen.seen.count("delete  a") == 1 and "nothing was undone" in screen.seen


def test_changes_before_that_time_stay(haft):
    made = call(haft, "echo 1 > a")
    said = haft("undo", "--since", "2100-01-01")
    assert (said.code, "nothing to undo" in said.err) == (2, True)
    assert haft("show", made["run"], "--json").json["outcome"]["changes"]["state"] == "committed"


def test_the_report_of_a_thread_counts_calls_and_files(haft):
    call(haft, "echo 1 > a")
    call(haft, "echo 2 > a; echo 2 > b")
    call(haft, "exit 3")
    haft("use", "shell", "--command", "rm -rf b", "--thread", "t", "--json")
    report = haft("log", "--thread", "t", "--stat", "--json").json
    assert report["calls"] == 4
    assert report["decisions"]["allowed"] == {"person": 2, "rule": 1}
    assert {path: len(runs) for path, runs in report["files"].items()} == {"a": 2, "b": 1}
    assert len(report["undoable"]) == 2
    text = haft("log", "--thread", "t", "--stat")
    assert "files changed: 2" in text.out
    assert "`haft undo --thread t`" in text.out


def test_the_report_of_several_workspaces_tells_them_apart(haft, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    call(haft, "echo 1 > a; echo 1 > b")
    haft("-w", str(other), "tools", "use", "shell", "--command", "echo 2 > a", "--approve")
    mixed = haft("log", "--stat")
    assert "files changed: 3\n" in mixed.out and "runs of every workspace; `-w .`" in mixed.err
    assert f"  in {other}:\n    a: r_" in mixed.out and f"  in {haft.workspace}:\n    a: r_" in mixed.out
    found = haft("log", "--stat", "--json").json
    assert {name: list(paths) for name, paths in found["workspaces"].items()} == {
        str(other): ["a"],
        str(haft.workspace): ["a", "b"],
    }
    assert {path: len(runs) for path, runs in found["files"].items()} == {"a": 2, "b": 1}
    alone = haft("log", "-w", ".", "--stat")
    assert "  in " not in alone.out and "every workspace" not in alone.err


def test_blame_prints_a_line_for_each_line(haft):
    (haft.workspace / "a").write_text("old\n")
    made = call(haft, "echo new >> a")
    old, new = haft("blame", "a", "--json").json
    assert (old["source"], old["text"]) == ("older", "old")
    assert (new["source"], new["run"], new["who"], new["line"]) == ("run", made["run"], made["who"], 2)
    assert haft("blame", "a").out.splitlines()[0].split() == ["older", "1)", "old"]
    outside = haft("blame", "/etc/passwd")
    assert (outside.code, "not in the workspace" in outside.err) == (2, True)
    directory = haft("blame", ".")
    assert (directory.code, "is a directory" in directory.err) == (2, True)
