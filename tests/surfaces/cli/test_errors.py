"""Whatever is wrong: one sentence, one hint, the right exit code, never a traceback."""

import json
import os
import subprocess
import sys

import pytest

from haft.surfaces.cli.main import READER_GONE

from .test_shapes import fits


@pytest.mark.parametrize(
    ("words", "code", "sentence", "hint"),
    [
        (["tool", "list"], 2, "there is no command `haft tool`", "did you mean `haft tools`?"),
        (["tools", "lst"], 2, "there is no command `haft tools lst`", "did you mean `haft tools list`?"),
        (["log", "--tol", "x"], 2, "`haft log` has no option `--tol`", "did you mean `--tool`?"),
        (
            ["providers", "list", "--al"],
            2,
            "`haft providers list` has no option `--al`",
            "the options are --help, --workspace, --json, --quiet, --version",
        ),
        (["providers", "list", "--hlp"], 2, "`haft providers list` has no option `--hlp`", "did you mean `--help`?"),
        (["log", "--status", "don"], 2, "there is no status `don`", "did you mean `done`?"),
        (["log", "--since", "soon"], 2, "`soon` is not a time", "write `30m`"),
        (["log", "--limit", "0"], 2, "`--limit` must be a whole number, at least 1, not `0`", "`haft log --help`"),
        (["log", "--limit", "abc"], 2, "`--limit` must be a whole number, at least 1, not `abc`", "`haft log --help`"),
        (["audit", "list", "--limit", "1.5"], 2, "`--limit` must be a whole number, at least 1, not `1.5`", None),
        (["approve", "q_x", "--as", "one"], 2, "`--as` must be a whole number, at least 1, not `one`", None),
        (["log", "--limit"], 2, "`--limit` needs a whole number, at least 1", None),
        (["log", "--who"], 2, "`--who` needs a value: `--who ", None),
        (["log", "--json=1"], 2, "`--json` takes no value", None),
        (["log", "more"], 2, "`haft log` takes no argument `more`", "`haft log --help`"),
        (["completion", "tcsh"], 2, "SHELL must be one of bash, zsh, fish, not `tcsh`", None),
        (["ls"], 2, "there is no command `haft ls`", "did you mean `haft list`?"),
        (["exec", "shell"], 2, "there is no command `haft exec`", "did you mean `haft use`?"),
        (["search", "x"], 2, "there is no command `haft search`", "did you mean `haft tools search`?"),
        (["show"], 2, "`haft show` needs RUN", "`haft log` shows the runs"),
        (["show", "r_none"], 2, "there is no run called `r_none`", "`haft log` lists the runs"),
        (["cancel"], 2, "`haft cancel` needs a run or `--all`", "haft log"),
        (["cancel", "r_none"], 2, "there is no run called `r_none`", "`haft log`"),
        (["-w", "nowhere", "tools", "list"], 2, "the workspace nowhere is not a directory", None),
        (["tools", "show", "read_file", "--as", "mpc"], 2, "`--as` must be one of openai,", "did you mean `mcp`?"),
        (["tools", "use"], 2, "`haft tools use` needs the name of a tool", "`haft tools list`"),
        (
            ["tools", "use", "read_file", "--pth", "a"],
            2,
            "`read_file` has no parameter `--pth`",
            "did you mean `--path`?",
        ),
        (["tools", "use", "shell", "--aprove"], 2, "`shell` has no parameter `--aprove`", "did you mean `--approve`?"),
        (
            ["tools", "use", "--aprove", "shell"],
            2,
            "`haft tools use` has no option `--aprove`",
            "did you mean `--approve`?",
        ),
        (["tools", "use", "read_file", "--path"], 2, "`--path` needs a value: string", None),
        (["tools", "use", "read_file", "a.txt"], 2, "`a.txt` belongs to no parameter of `read_file`", "`--path VALUE`"),
        (["tools", "use", "read_file", "--args", "{"], 2, "`--args` is not JSON", None),
        (["tools", "use", "read_file", "--args", "[1]"], 2, "`--args` must hold a JSON object", None),
        (["tools", "use", "read_file", "--args", "@none.json"], 2, "none.json cannot be read: No such file", None),
        (
            ["tools", "use", "read_file", "--only", "outpt"],
            2,
            "an outcome has no field `outpt`",
            "did you mean `output`? the fields are run, tool, status, output,",
        ),
        (["tools", "use", "read_file", "--timeout", "-1"], 2, "`--timeout` must be a number of seconds", None),
        (["tools", "use", "read_file", "--config", "x"], 2, "`--config` takes KEY=VALUE", None),
        (
            ["tools", "use", "shell", "--write", "../nowhere"],
            2,
            "`--write`: `../nowhere` does not exist",
            "create it first, or grant its directory",
        ),
        (["tools", "use", "shell", "--write"], 2, "`--write` needs a path, such as `--write ../out`", "after `--`"),
        (
            ["tools", "use", "shell", "--wait", "--only", "output"],
            2,
            "`--wait` needs a number of seconds, such as `--wait 60`",
            "if you mean a parameter of the tool, write it after `--`",
        ),
        (["tools", "use", "-w"], 2, "`-w` needs a directory, such as `-w .`", None),
        (["tools", "use", "shell", "--scratch=yes"], 2, "`--scratch` takes no value", "after `--`"),
        (["tools", "use", "shell", "--netwrk"], 2, "`shell` has no parameter `--netwrk`", "did you mean `--network`?"),
        (["tools", "use", "shell", "--no-cache=yes"], 2, "`--no-cache` takes no value", "after `--`"),
        (["output", "r_none", "--grep", "("], 2, "`--grep` needs a regular expression", None),
        (["output", "r_none", "--lines", "5:2"], 2, "`--lines 5:2` selects no lines", None),
    ],
)
def test_a_wrong_line_is_told_in_one_sentence(haft, words, code, sentence, hint):
    said = haft(*words)
    first, *rest = said.err.splitlines()
    assert said.code == code
    if words[:2] == ["tools", "use"]:
        assert (said.json["run"], said.json["status"]) == (None, "error")
    else:
        assert said.out == ""
    assert first.startswith(f"error: {sentence}") or sentence in first
    if hint is not None:
        assert rest[0].startswith("hint: ") and hint in rest[0]
    assert len(rest) <= 1


@pytest.mark.parametrize(
    ("words", "code", "error", "sentence"),
    [
        (["read_file", "--path", "../../etc/passwd"], 2, "invalid-arguments", "lies outside the workspace"),
        (["read_file", "--path", "link"], 2, "invalid-arguments", "lies outside the workspace"),
        (["read_fil", "--path", "a.txt"], 2, "unknown-tool", "there is no tool called `read_fil`"),
        (
            ["read_file", "--path", "a.txt", "--start-line", "x"],
            2,
            "invalid-arguments",
            "`start_line` must be an integer",
        ),
        (["shell", "--command", "touch x"], 3, "rejected", "needs approval"),
        (["shell", "--command", "exit 3", "--approve"], 1, "tool-failed", "exited 3"),
        (["--timeout", "0.3", "shell", "--command", "sleep 20", "--approve"], 4, "timed-out", "did not end within"),
    ],
)
def test_a_call_that_goes_wrong_is_an_outcome_and_a_sentence(haft, words, code, error, sentence):
    os.symlink("/etc/passwd", haft.workspace / "link")
    said = haft("tools", "use", *words)
    assert said.code == code
    assert said.json["error"]["code"] == error
    assert said.err.startswith("error: ") and sentence in said.err.splitlines()[0]
    quiet = haft("tools", "use", *words, "-q")
    assert (quiet.code, quiet.err) == (code, "")


FAILURES = {
    "a misspelt flag": (["read_file", "--pth", "a.txt"], "read_file", "bad-usage", 2),
    "a misspelt option": (["--aprove", "read_file"], "read_file", "bad-usage", 2),
    "an option without its value": (["read_file", "--timeout"], "read_file", "bad-usage", 2),
    "a wrong timeout": (["read_file", "--timeout", "soon"], "read_file", "bad-usage", 2),
    "arguments that are no JSON": (["read_file", "--args", "{"], "read_file", "bad-usage", 2),
    "a file that cannot be read": (["read_file", "--args", "@none.json"], "read_file", "bad-usage", 2),
    "a workspace that is missing": (["-w", "none", "read_file"], "read_file", "bad-usage", 2),
    "no name": ([], "", "bad-usage", 2),
    "a path without a tool": (["./none"], "./none", "bad-usage", 2),
    "an unknown tool": (["read_fil"], "read_fil", "unknown-tool", 2),
    "arguments that do not fit": (["read_file", "--path", "../x"], "read_file", "invalid-arguments", 2),
    "a path that is no UTF-8": (["read_file", "--path", os.fsdecode(b"\xff")], "read_file", "invalid-arguments", 2),
    "a tool that is no UTF-8": ([os.fsdecode(b"\xff")], "\udcff", "unknown-tool", 2),
}


@pytest.mark.parametrize("why", FAILURES)
def test_every_failure_of_a_call_is_the_same_outcome_in_a_pipe(haft, why):
    words, tool, code, exit_code = FAILURES[why]
    done = haft("tools", "use", *words)
    fits("outcome", done.json)
    assert (done.code, done.json["tool"], done.json["status"]) == (exit_code, tool, "error")
    assert (done.json["error"]["code"], done.json["changes"]["state"]) == (code, "none")
    if why != "arguments that do not fit":  # The tool itself refuses those, and so has run.
        assert (done.json["sandbox"]["network"], done.json["sandbox"]["reason"]) == (False, "it has not run")
    assert done.err.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "path"),
    [(["tools", "use", "read_file", "--path", "a.txt"], "haft.toml"), (["use", "read_file"], "haft.json")],
)
def test_bad_configuration_is_an_outcome_too(haft, words, path):
    (haft.workspace / path).write_text("= [")
    said = haft(*words)
    fits("outcome", said.json)
    assert (said.code, said.json["run"], said.json["error"]["code"]) == (2, None, "bad-config")


def test_a_state_home_that_cannot_be_used_is_an_outcome_too(haft):
    haft.home.write_text("")
    said = haft("tools", "use", "read_file", "--path", "a.txt")
    fits("outcome", said.json)
    assert (said.code, said.json["run"], said.json["error"]["code"]) == (2, None, "bad-config")


def test_a_failure_is_given_in_the_form_that_was_asked_for(haft):
    wrong = ["tools", "use", "read_file", "--pth", "a"]
    assert haft(*wrong, "--only", "status").out == "error\n"
    assert haft(*wrong, "--only", "output").out == ""
    assert haft(*wrong, "--only=error").json["code"] == "bad-usage"
    assert haft(*wrong, "--thread", "T-9").json["thread"] == "T-9"
    (line,) = haft(*wrong, "--stream").out.splitlines()
    fits("event", json.loads(line))
    assert json.loads(line)["outcome"]["error"]["code"] == "bad-usage"


def test_a_person_at_a_terminal_reads_only_the_sentence(terminal):
    here = terminal("tools", "use", "read_file", "--pth", "a", COLUMNS="200")
    assert here.end() == 2
    assert "has no parameter `--pth`" in here.seen and "{" not in here.seen


def test_a_database_that_is_broken_is_json_too(haft):
    assert haft("tools", "use", "read_file", "--path", "a.txt").code == 0
    next(haft.home.glob("*.db")).write_bytes(b"no database" * 1000)
    said = haft("log", "--json")
    assert said.code == 1
    fits("error", said.json)


def test_a_reader_that_goes_away_is_no_error(haft):
    line = f"{sys.executable} -m haft.surfaces.cli.main tools use --timeout 20 shell --approve --stream --command 'yes'"
    done = subprocess.run(
        ["bash", "-c", f'{line} | head -1; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True, text=True, cwd=haft.workspace, env=haft.env, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == str(READER_GONE)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_behind_stdout_is_said(haft):
    with open("/dev/full", "w") as full:
        process = haft.start("tools", "list", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.decode() == "error: standard output cannot be written: No space left on device\n"


def test_an_error_nobody_foresaw_is_said_as_a_bug(monkeypatch, capsys):
    from haft.surfaces.cli import main
    from haft.surfaces.cli.commands import tools

    monkeypatch.setattr(tools, "listings", lambda _said: 1 / 0)
    assert main.run(["tools", "list"]) == 1
    assert capsys.readouterr().err == (
        "error: haft itself failed: ZeroDivisionError: division by zero\n"
        "hint: this is a bug in haft: please report it\n"
    )


def test_what_steers_a_terminal_is_shown_and_not_sent(haft):
    said = haft("tools", "show", "\x1b[31mred\u202e")
    assert "\x1b" not in said.err and "\u202e" not in said.err
    assert "\\x1b[31mred\\u202e" in said.err
