"""`haft tools use … --try`: run, look, then commit or not."""

from __future__ import annotations

import pytest

from .conftest import short

COMMIT = "Apply these changes? [y/N] "
WRITE = ["tools", "use", "write_file", "--path", "a.txt", "--content", "one\n2\nthree\n", "--try"]


def changes(haft):
    return haft("log", "--limit", "1", "--json").json[0]["outcome"]["changes"]


def test_yes_commits_what_was_shown(terminal, haft):
    here = terminal(*WRITE)
    here.until(COMMIT)
    assert "trial run of write_file: nothing below is in the workspace yet" in here.seen
    assert "\x1b[31;1m-two\x1b[0m\n\x1b[32m+2\x1b[0m\n" in here.seen
    assert (haft.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    here.type("y\n")
    assert here.end() == 0
    assert (haft.workspace / "a.txt").read_text() == "one\n2\nthree\n"
    assert here.seen.count("wrote 12 bytes to a.txt") == 1, "the output was shown before the question"
    run = haft("log", "--json").json[0]["id"]
    assert here.seen.endswith(f"changed 1 file (haft diff {short(run)}, haft undo {short(run)})\n")


def test_the_end_of_input_at_the_question_leaves_the_changes_held(terminal, haft):
    here = terminal(*WRITE)
    here.until(COMMIT)
    here.type("\x04")
    assert here.end() == 3
    assert "are held: nobody answered" in here.seen
    run = haft("log", "--json").json[0]
    assert (run["outcome"]["decision"]["by"], changes(haft)["state"]) == ("nobody", "held")
    assert not [each for each in haft("audit", "list", "--json").json if each["type"] == "reject"]


@pytest.mark.parametrize("answer", ["n\n", "\n", "NO\n"])
def test_no_and_enter_discard_the_changes(terminal, haft, answer):
    here = terminal(*WRITE)
    here.until(COMMIT)
    here.type(answer)
    assert here.end() == 3
    assert (haft.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert haft("log", "--json").json[0]["status"] == "rejected-by-user"
    assert changes(haft)["state"] == "discarded"


def test_the_word_yes_commits_and_an_unknown_word_asks_again(terminal, haft):
    here = terminal(*WRITE)
    here.until(COMMIT)
    here.type("ok\n")
    here.until("`ok` is not an answer here: type y (yes) or n (no)")
    here.until(COMMIT)
    here.type("yes\n")
    assert here.end() == 0
    assert changes(haft)["state"] == "committed"


def test_ctrl_c_at_the_question_discards_the_changes(terminal, haft):
    here = terminal(*WRITE)
    here.until(COMMIT)
    here.type("\x03")
    assert here.end() == 130
    assert (haft.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert haft("changes", "list", "--json").json == []


def test_a_long_diff_is_cut_and_says_where_the_rest_is(terminal, haft):
    content = "".join(f"{number}\n" for number in range(400)) + "x" * 5000 + "\n"
    here = terminal("tools", "use", "write_file", "--path", "long", "--content", content, "--try")
    here.until(COMMIT)
    run = haft("changes", "list", "--json").json[0]["run"]
    assert f"more lines: `haft diff {short(run)}` in another terminal shows all" in here.seen
    assert here.seen.count("\x1b[32m+") < 201
    assert "xxxxx" in haft("diff", run).out, "another process sees all of it meanwhile"
    here.type("n\n")
    assert here.end() == 3


def test_nothing_in_a_diff_steers_the_terminal(terminal, haft):
    here = terminal("tools", "use", "write_file", "--path", "e", "--content", "\x1b[2Jx\u202e\n", "--try")
    here.until(COMMIT)
    assert "\x1b[2J" not in here.seen and "\\x1b[2Jx\\u202e" in here.seen
    here.type("n\n")
    here.end()


def test_output_that_came_live_comes_before_the_question_and_once(terminal, haft):
    here = terminal("tools", "use", "shell", "--command", "echo out; printf open; echo new > n.txt", "--try")
    here.until("? [y/N")  # Where layers cannot be had, it asks before.
    if COMMIT not in here.seen:
        pytest.skip("this machine cannot try processes")
    assert here.seen.startswith("out\nopen\n")
    here.type("y\n")
    assert here.end() == 0
    assert here.seen.count("out\n") == 1
    assert (haft.workspace / "n.txt").exists()


def test_without_a_terminal_it_is_held_and_says_how_to_go_on(haft):
    said = haft(*WRITE)
    assert (said.code, said.json["status"]) == (0, "done")
    assert said.json["changes"]["state"] == "held"
    run = said.json["run"]
    assert said.err.splitlines() == [
        f"1 file held, not in the workspace (it is a trial run): `haft diff {short(run)}`, then",
        f"  `haft changes apply {short(run)}` to apply them, `haft changes drop {short(run)}` to discard them",
    ]
    assert (haft.workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert haft(*WRITE, "-q").err == ""


def test_approve_commits_what_was_tried(haft):
    said = haft(*WRITE, "--approve")
    assert (said.code, said.json["changes"]["state"], said.err) == (0, "committed", "")
    assert (haft.workspace / "a.txt").read_text() == "one\n2\nthree\n"


def test_what_changed_nothing_asks_nothing(haft):
    said = haft("tools", "use", "read_file", "--path", "a.txt", "--try")
    assert (said.code, said.json["changes"]["state"]) == (0, "none")


def test_network_cannot_be_tried(haft):
    said = haft(*WRITE, "--network")
    assert said.code == 2 and "cannot have a trial run with network" in said.err


def test_a_call_on_a_terminal_says_what_it_changed_unless_it_is_to_be_quiet(terminal, haft):
    words = ["tools", "use", "write_file", "--path", "b.txt", "--content", "x", "--approve"]
    loud = terminal(*words)
    assert loud.end() == 0
    run = haft("log", "--json").json[0]["id"]
    assert f"\nchanged 1 file (haft diff {short(run)}, haft undo {short(run)})\n" in loud.seen
    quiet = terminal(*words, "-q")
    assert quiet.end() == 0 and "haft undo" not in quiet.seen
    assert haft(*words).err == "", "programs read it in the outcome"


@pytest.mark.parametrize(("verb", "answer", "code"), [("apply", "n\n", 0), ("drop", "y\n", 3)])
def test_another_process_may_be_faster_than_the_answer(terminal, haft, verb, answer, code):
    here = terminal(*WRITE)
    here.until(COMMIT)
    run = haft("changes", "list", "--json").json[0]["run"]
    assert haft("changes", verb, run).code == 0
    here.type(answer)
    assert here.end() == code
    now = "one\n2\nthree\n" if verb == "apply" else "one\ntwo\nthree\n"
    assert (haft.workspace / "a.txt").read_text() == now
    assert "another process" in haft("show", run, "--json").json["outcome"]["decision"]["reason"]
