"""Whatever is wrong: one sentence, one hint, the right exit code, never a traceback."""

import os
import subprocess
import sys

import pytest

from haft.surfaces.cli.main import READER_GONE


@pytest.mark.parametrize(
    ("words", "code", "sentence", "hint"),
    [
        (["tool", "list"], 2, "there is no command `haft tool`", "did you mean `haft tools`?"),
        (["tools", "lst"], 2, "there is no command `haft tools lst`", "did you mean `haft tools list`?"),
        (["log", "--tol", "x"], 2, "`haft log` has no option `--tol`", "did you mean `--tool`?"),
        (["log", "--status", "don"], 2, "there is no status `don`", "did you mean `done`?"),
        (["log", "--since", "soon"], 2, "`soon` is no time", "write `30m`"),
        (["log", "--limit", "0"], 2, "`--limit`: 0 is not in the range", "`haft log --help`"),
        (["show"], 2, "`haft show` needs RUN", "`haft show --help`"),
        (["show", "r_none"], 2, "there is no run called `r_none`", "`haft log` shows the runs there are"),
        (["cancel"], 2, "`haft cancel` needs a run or `--all`", "haft log"),
        (["cancel", "r_none"], 2, "there is no run called `r_none`", "`haft log`"),
        (["-w", "nowhere", "tools", "list"], 2, "the workspace nowhere is not a directory", None),
        (["tools", "show", "read_file", "--as", "mpc"], 2, "`--as`: 'mpc' is not one of", "`haft tools show --help`"),
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
            "did you mean `output`?",
        ),
        (["tools", "use", "read_file", "--timeout", "-1"], 2, "`--timeout` must be a number of seconds", None),
        (["tools", "use", "read_file", "--config", "x"], 2, "`--config` is given as KEY=VALUE", None),
        (
            ["tools", "use", "shell", "--write", "../nowhere"],
            2,
            "`--write`: there is no `../nowhere`",
            "make it first, or grant its directory",
        ),
        (["tools", "use", "shell", "--write"], 2, "`--write` needs a value", None),
        (["tools", "use", "shell", "--network=yes"], 2, "`--network` takes no value", "after `--`"),
        (["tools", "use", "shell", "--netwrk"], 2, "`shell` has no parameter `--netwrk`", "did you mean `--network`?"),
        (
            ["tools", "use", "shell", "--no-cache"],
            2,
            "`--no-cache` is an option of haft that this version does not have",
            "after `--`",
        ),
        (["output", "r_none", "--grep", "("], 2, "`--grep` is no regular expression", None),
        (["output", "r_none", "--lines", "5:2"], 2, "`--lines 5:2` names no lines", None),
    ],
)
def test_a_wrong_line_is_told_in_one_sentence(haft, words, code, sentence, hint):
    said = haft(*words)
    first, *rest = said.err.splitlines()
    assert (said.code, said.out) == (code, "")
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
        (["shell", "--command", "sleep 20", "--approve", "--timeout", "0.3"], 4, "timed-out", "did not end within"),
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


def test_a_reader_that_goes_away_is_no_error(haft):
    line = f"{sys.executable} -m haft.surfaces.cli.main tools use shell --approve --stream --command 'yes' --timeout 20"
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
    from haft.surfaces.cli import main, tools

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
