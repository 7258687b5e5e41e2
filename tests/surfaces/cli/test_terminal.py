"""A real terminal: live output, the question, Ctrl-C."""

from __future__ import annotations

import sys

import pytest

QUESTION = ", e(dit), m(essage)] "


def test_a_call_is_shown_whole_asked_and_runs_live(terminal):
    here = terminal("tools", "use", "shell", "--command", "sh -c 'echo first; echo second'", "-q")
    here.until(QUESTION)
    assert "shell needs approval: " in here.seen
    assert "command:" in here.seen and "echo second" in here.seen
    assert here.seen.count("\n  sandbox:") == 1
    here.type("y\n")
    here.until("\nfirst\n")
    assert here.end() == 0
    assert here.seen.endswith("first\nsecond\n")
    assert '"status"' not in here.seen, "on a terminal the outcome is not printed"


@pytest.mark.parametrize("answer", ["n\n", "\n", "No\n"])
def test_no_and_enter_reject_the_call(terminal, haft, answer):
    here = terminal("tools", "use", "write_file", "--path", "b.txt", "--content", "x")
    here.until(QUESTION)
    here.type(answer)
    assert here.end() == 3
    assert "error:" in here.seen and "rejected it" in here.seen
    assert not (haft.workspace / "b.txt").exists()


def test_what_was_typed_before_the_question_does_not_answer_it(terminal):
    here = terminal("tools", "use", "shell", "--command", "sh -c 'echo ran'")
    here.type("y\n")
    here.until(QUESTION)
    here.type("n\n")
    assert here.end() == 3
    assert "\nran\n" not in here.seen


def test_arguments_are_never_cut_and_hide_nothing(terminal):
    long = "x" * 300 + "END"
    here = terminal("tools", "use", "shell", "--command", f"echo {long}\n# \x1b[2K\u202e hidden\n  path: /fake")
    here.until(QUESTION)
    here.type("n\n")
    here.end()
    shown = here.seen.split(QUESTION)[0]
    joined = "".join(line.removeprefix("  │ ") for line in shown.splitlines())
    assert long in joined
    assert "\\x1b[2K\\u202e hidden" in shown and "\u202e" not in shown
    assert "  │   path: /fake" in shown, "every line of a value is marked as such"


def test_the_end_of_input_at_a_prompt_is_not_taken_for_a_persons_answer(terminal, haft):
    here = terminal("tools", "use", "write_file", "--path", "b.txt", "--content", "x")
    here.until(QUESTION)
    here.type("\x04")
    assert here.end() == 3
    assert "nobody answered" in here.seen and not (haft.workspace / "b.txt").exists()
    (run,) = haft("log", "--json").json
    assert run["outcome"]["decision"]["by"] == "nobody"


def test_edited_arguments_are_shown_again_and_run(terminal, haft):
    here = terminal("tools", "use", "write_file", "--path", "b.txt", "--content", "x")
    here.until(QUESTION)
    here.type("e\n")
    here.until("Arguments as JSON on one line")
    here.type("nonsense\n")
    here.until("the arguments were not changed")
    here.until(QUESTION)
    here.type("e\n")
    here.until("Arguments as JSON on one line")
    here.type('{"path": "c.txt", "content": "y"}\n')
    here.until("path: c.txt")
    here.until("content: y")
    here.until(QUESTION)
    here.type("y\n")
    assert here.end() == 0
    assert (haft.workspace / "c.txt").read_text() == "y" and not (haft.workspace / "b.txt").exists()


def test_the_editor_is_used_where_there_is_one(terminal, haft):
    editor = haft.workspace / "editor"
    editor.write_text('#!/bin/sh\nsed -i.bak s/before/after/ "$1"\n')
    editor.chmod(0o755)
    here = terminal("tools", "use", "shell", "--command", "sh -c 'echo before'", EDITOR=str(editor))
    here.until(QUESTION)
    here.type("e\n")
    here.until("echo after")
    here.until(QUESTION)
    here.type("y\n")
    assert here.end() == 0 and here.seen.endswith("after\n")


def test_ctrl_c_at_the_question_cancels(terminal):
    here = terminal("tools", "use", "shell", "--command", "sh -c 'echo ran'")
    here.until(QUESTION)
    here.type("\x03")
    assert here.end() == 130
    assert "Traceback" not in here.seen and "\nran\n" not in here.seen


def test_ctrl_c_ends_a_live_call(terminal):
    here = terminal("tools", "use", "shell", "--command", "echo on; sleep 300", "--approve")
    here.until("on\n")
    here.type("\x03")
    assert here.end() == 130
    assert "cancelling" in here.seen


def test_a_failure_is_told_below_the_output(terminal):
    here = terminal("tools", "use", "shell", "--command", "printf half; exit 4", "--approve", NO_COLOR="1")
    assert here.end() == 1
    assert here.seen == "half\nerror: `bash` exited 4\n"


def test_the_line_that_was_just_shown_is_not_told_again(terminal, haft):
    words = ["tools", "use", "shell", "--command", "echo 'Error: no such thing' >&2; exit 1", "--approve"]
    here = terminal(*words, NO_COLOR="1")
    assert here.end() == 1
    assert here.seen.count("Error: no such thing") == 1 and here.seen.endswith("error: `bash` exited 1\n")
    assert haft(*words).err == "error: `bash` exited 1: Error: no such thing\n"


def test_output_that_steers_a_terminal_is_made_visible(terminal):
    here = terminal("tools", "use", "shell", "--command", r"printf '\033]0;title\007\033[31mred\n'", "--approve")
    assert here.end() == 0
    assert here.seen == "\\x1b]0;title\\x07\\x1b[31mred\n"


def test_ended_children_are_told_in_one_line(terminal):
    here = terminal("tools", "use", "shell", "--command", "sleep 300 & echo on", "--approve")
    assert here.end() == 0
    assert here.seen.startswith("on\nended with the call: ")
    assert "sleep 300" in here.seen
    assert here.seen.count("\n") == 2


def test_colour_only_where_it_is_wanted(terminal, haft):
    wrong = ("tools", "show", "nothing")
    coloured = terminal(*wrong)
    assert coloured.end() == 2 and "\x1b[31;1merror:" in coloured.seen
    plain = terminal(*wrong, NO_COLOR="1")
    assert plain.end() == 2 and "\x1b" not in plain.seen
    assert "\x1b" not in haft(*wrong).err


def test_lines_fit_the_terminal(terminal):
    here = terminal("tools", "list", NO_COLOR="1")
    assert here.end() == 0
    assert all(len(line) <= 60 for line in here.seen.splitlines())
    assert "…" in here.seen


MAKES_A_CALL = """
class Plugin:
    def get_tool_schemas(self, state):
        return [{"name": "through", "description": "Has a file written.", "parameters": {"properties": {}}}]

    async def execute_tool(self, name, arguments, state, context):
        return (await context.call("write_file", {"path": "b.txt", "content": "x"})).status
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox elsewhere")
def test_what_only_the_calls_of_a_call_changed_is_told_with_how_to_undo_it(terminal, haft, tmp_path):
    plugin, config = tmp_path / "plugin" / "plugin.py", tmp_path / "config" / "haft" / "haft.toml"
    for file, text in ((plugin, MAKES_A_CALL), (config, f'plugins = ["path:{plugin}"]\n')):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    here = terminal("tools", "use", "through", "--approve")
    assert here.end() == 0, here.seen
    _before, _words, undo = here.seen.rpartition("note: the calls that it made changed 1 path (haft show ")
    run = undo.partition(",")[0]
    assert undo == f"{run}, haft undo {run})\n"
    assert haft("undo", run).code == 0
    assert not (haft.workspace / "b.txt").exists()
