"""The rewritten lines of an agent's shell, run by a real bash: as the agent expects its own commands to behave."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hooking import Hook
from residents import end_resident, resident_of

from haft.service import Filter, StateHome, open_history

ALLOWED = '[[permissions]]\ntool = "shell"\naction = "allow"\n'


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state home with one resident for all tests, and a person's rule that allows everything plain."""
    place = tmp_path_factory.mktemp("shell-calls")
    (place / "config" / "haft").mkdir(parents=True)
    (place / "config" / "haft" / "haft.toml").write_text(ALLOWED)
    yield place
    end_resident(place / "home")


@pytest.fixture
def hook(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(shared / "config"))
    return hook_in(shared, tmp_path / "work")


def hook_in(shared: Path, workspace: Path, **variables: str) -> Hook:
    workspace.mkdir(exist_ok=True)
    (workspace / "haft.toml").write_text("")
    given = {"XDG_CONFIG_HOME": str(shared / "config"), "CLAUDE_CODE_SESSION_ATTENDED": "1", **variables}
    hook = Hook(shared / "home", workspace, **given)
    # A command that only reads proves that this agent runs rewritten lines.
    assert hook.shell(hook.before("Bash", {"command": "ls"})["updatedInput"]["command"]).returncode == 0
    return hook


def line_of(hook: Hook, command: str, **arguments: Any) -> str:
    answer = hook.before("Bash", {"command": command, **arguments})
    assert answer["permissionDecision"] == "allow", answer
    return str(answer["updatedInput"]["command"])


def last_run(hook: Hook) -> dict[str, Any]:
    history = open_history(StateHome(str(hook.home)))
    assert history is not None
    try:
        found = history.runs(Filter(limit=1))[0]
        return {**found.rest, **found.record}
    finally:
        history.close()


def begin(line: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a line, and wait until its command says something. bash replaces itself by the line's only program."""
    process = subprocess.Popen(["bash", "-c", line], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.every_user
def test_rm_of_an_ignored_file_is_undone(hook: Hook, haft: Callable[..., str]) -> None:
    (hook.workspace / ".gitignore").write_text("secret\n")
    (hook.workspace / "secret").write_text("kept\n")
    assert hook.shell(line_of(hook, "rm secret")).returncode == 0
    assert not (hook.workspace / "secret").exists()
    haft(hook.home, hook.workspace, "undo", last_run(hook)["run"])
    assert (hook.workspace / "secret").read_text() == "kept\n"


@pytest.mark.parametrize(
    "command",
    [
        "printf '%s|' \"a  b\" 'c' $((1+2))",
        "cat <<'EOF'\nit's \"quoted\" $HOME `x`\nEOF",
        "echo one\necho two >&2\nfalse",
        'for i in 1 2; do\n  echo "ü $i" # a comment\ndone; exit 7',
        "x=1; test $x = 1 && echo yes || echo no",
    ],
)
def test_a_line_does_what_the_command_does(hook: Hook, command: str) -> None:
    line = line_of(hook, command)
    through, plain = hook.shell(line), hook.shell(command)
    assert (through.returncode, through.stdout, through.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert command.splitlines()[0].replace("'", "'\"'\"'") in line, "a person cannot read it"


def test_the_agents_shell_goes_where_the_command_went_and_keeps_its_status(hook: Hook) -> None:
    (hook.workspace / "a b").mkdir()
    went = hook.shell(line_of(hook, "cd 'a b'") + "; echo $?; pwd -P")
    assert went.stdout == f"0\n{hook.workspace / 'a b'}\n"
    failed = hook.shell(line_of(hook, "cd 'a b' && false") + "; echo $?; pwd -P")
    assert failed.stdout == f"1\n{hook.workspace / 'a b'}\n"
    stayed = hook.shell(line_of(hook, "(cd 'a b')") + "; echo $?; pwd -P")
    assert stayed.stdout == f"0\n{hook.workspace}\n"
    made = hook.shell(line_of(hook, "mkdir new && cd new") + "; pwd -P")
    assert made.stdout == f"{hook.workspace / 'new'}\n"


def test_a_line_runs_once(hook: Hook) -> None:
    line = line_of(hook, "echo x >> log")
    assert hook.shell(line).returncode == 0
    again = hook.shell(line)
    assert again.returncode == 126 and "used before" in again.stderr
    assert (hook.workspace / "log").read_text() == "x\n"


def test_the_agents_time_limit_ends_the_command_and_the_agent_reads_why(hook: Hook) -> None:
    ended = hook.shell(line_of(hook, "echo begun; sleep 1000", timeout=1000))
    assert (ended.returncode, ended.stdout) == (124, "begun\n")
    assert "did not end within" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_command_ends_with_the_process_of_its_line(hook: Hook, number: signal.Signals) -> None:
    process = begin(line_of(hook, "echo begun; touch made; sleep 1000"), hook.workspace)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    while (run := last_run(hook))["status"] not in ("cancelled", "done", "error"):
        pass
    assert run["status"] == "cancelled"
    assert not (hook.workspace / "made").exists()


@pytest.mark.every_user
def test_a_background_command_writes_to_the_workspace_while_others_run(hook: Hook) -> None:
    line = line_of(hook, "echo first > made; echo begun; sleep 1000", run_in_background=True)
    process = begin(line, hook.workspace)
    assert (hook.workspace / "made").read_text() == "first\n"
    assert hook.shell(line_of(hook, "cat made; touch other")).stdout == "first\n"
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert "other commands cannot reach its ports" in err
    history = open_history(StateHome(str(hook.home)))
    assert history is not None
    [found] = [each for each in history.runs(Filter(limit=3)) if "sleep 1000" in json.dumps([each.rest, each.record])]
    history.close()
    changes = {**found.rest, **found.record}["changes"]
    assert [each["path"] for each in changes["files"]] == ["made"]
    assert (changes["complete"], changes["state"]) == (False, "committed")


def test_an_agent_with_another_path_finds_its_own_programs(shared: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir(mode=0o755)
    (programs / "only-mine").write_text("#!/bin/sh\necho mine\n")
    (programs / "only-mine").chmod(0o755)
    hook = hook_in(shared, tmp_path / "work", PATH=f"{programs}:{os.environ['PATH']}")
    assert hook.shell(line_of(hook, "only-mine; touch x")).stdout == "mine\n"
    other = hook_in(shared, tmp_path / "work")
    assert other.shell(line_of(other, "only-mine; touch x")).returncode == 0
    assert "not found" in other.shell(line_of(other, "only-mine; touch x")).stderr


def test_a_ticket_is_good_when_the_resident_was_killed(hook: Hook) -> None:
    line = line_of(hook, "touch made")
    kill_resident(hook.home)
    ended = hook.shell(line)
    assert ended.returncode == 0, ended.stderr
    assert (hook.workspace / "made").exists()


def test_nothing_runs_on_when_the_resident_is_killed(hook: Hook) -> None:
    sleep = f"sleep 1234.{os.getpid()}"  # No other run of the tests has the same one.
    process = begin(line_of(hook, f"echo begun; touch made; {sleep}"), hook.workspace)
    kill_resident(hook.home)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 126
    assert "did not run to its end" in err
    assert not (hook.workspace / "made").exists()
    hook.before("Bash", {"command": "ls"})  # The next resident records what became of it.
    while sleep in _all_command_lines():
        pass


def kill_resident(home: Path) -> None:
    process = resident_of(home)
    assert process is not None
    watched = os.pidfd_open(process)
    os.kill(process, signal.SIGKILL)
    assert select.select([watched], [], [], 20)[0]
    os.close(watched)


def _all_command_lines() -> str:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(line for line in found if line.startswith("sleep"))
