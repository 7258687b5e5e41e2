"""Agents that live and end: what becomes of the calls whose end they did not tell."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from haft.service import Filter, StateHome, clients_alive, open_history
from haft.surfaces.hook.line import hook_words

AGENT = """
import json, subprocess, sys
for line in sys.stdin:
    told = json.loads(line)
    done = subprocess.run(told["words"], input=json.dumps(told["given"]), capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class Agent:
    """A process of its own that calls hooks."""

    def __init__(self, home: Path, workspace: Path, **variables: str) -> None:
        self.workspace = workspace
        env = {**os.environ, **variables, "HAFT_HOME": str(home), "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", AGENT], stdin=-1, stdout=-1, text=True, cwd=workspace, env=env
        )
        self.pid = self._process.pid

    def hook(self, event: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        given = {
            "session_id": "s", "cwd": str(self.workspace), "hook_event_name": event, "tool_name": tool,
            "tool_input": arguments, "tool_use_id": "call-1",
        }  # fmt: skip
        self._process.stdin.write(json.dumps({"words": hook_words("claude-code"), "given": given}) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        assert (code, err) == (0, "")
        return json.loads(out)["hookSpecificOutput"] if out else {}

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "haft.toml").write_text("")
    (made / "note.txt").write_text("old\n")
    return made


def ended(home: Path) -> dict[str, Any]:
    """The one run, when it has ended. A call that does nothing yet is saved a moment after its hook got the answer."""
    while True:
        history = open_history(StateHome(str(home)))
        if history is not None:
            with contextlib.closing(history):
                for run in history.runs(Filter()):
                    if not run.is_open:
                        return {**run.rest, **run.record}


def test_a_call_whose_agent_ended_ends_as_unknown_and_never_as_done(home: Path, workspace: Path) -> None:
    agent = Agent(home, workspace)
    assert agent.hook("PreToolUse", "WebFetch", {"url": "https://example.org"}) == {}
    agent.end()
    run = ended(home)
    assert (run["status"], run["error"]["code"]) == ("error", "unknown-end")


def test_the_changes_of_a_call_whose_end_is_unknown_are_known(home: Path, workspace: Path) -> None:
    rules = workspace.parent / "config" / "haft" / "haft.toml"
    rules.parent.mkdir(parents=True)
    rules.write_text('[[permissions]]\ntool = "write_file"\naction = "allow"\n')
    agent = Agent(home, workspace, XDG_CONFIG_HOME=str(workspace.parent / "config"))
    assert agent.hook("PreToolUse", "Write", {"file_path": str(workspace / "note.txt"), "content": "new\n"}) == {}
    (workspace / "note.txt").write_text("new\n")
    agent.end()
    run = ended(home)
    assert run["error"]["code"] == "unknown-end"
    assert [file["path"] for file in run["changes"]["files"]] == ["note.txt"]


def test_a_rewritten_line_that_the_agent_never_ran_is_not_covered(home: Path, workspace: Path) -> None:
    agent = Agent(home, workspace)
    assert "updatedInput" in agent.hook("PreToolUse", "Bash", {"command": "cat note.txt"})
    agent.end()
    assert ended(home)["error"]["code"] == "not-covered"


@pytest.mark.parametrize("is_told", [False, True])
def test_a_background_line_that_the_agent_never_ran_is_not_covered(
    home: Path, workspace: Path, *, is_told: bool
) -> None:
    """Claude Code tells at once that it has started such a command: it may run the line later."""
    agent = Agent(home, workspace)
    given = {"command": "cat note.txt", "run_in_background": True}
    line = agent.hook("PreToolUse", "Bash", given)["updatedInput"]["command"]
    if is_told:
        agent.hook("PostToolUse", "Bash", {**given, "command": line})
    agent.end()
    assert ended(home)["error"]["code"] == "not-covered"


def test_a_background_line_may_run_after_the_agent_told_of_it(home: Path, workspace: Path) -> None:
    agent = Agent(home, workspace)
    given = {"command": "cat note.txt", "run_in_background": True}
    line = agent.hook("PreToolUse", "Bash", given)["updatedInput"]["command"]
    agent.hook("PostToolUse", "Bash", {**given, "command": line})
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=workspace)
    agent.end()
    assert (done.returncode, done.stdout) == (0, "old\n"), done.stderr
    assert ended(home)["status"] == "done"


def test_an_agent_that_ended_before_it_ran_a_rewritten_line_is_still_rewritten(home: Path, workspace: Path) -> None:
    refused = Agent(home, workspace)
    assert "updatedInput" in refused.hook("PreToolUse", "Bash", {"command": "cat note.txt"})
    refused.end()
    assert ended(home)["error"]["code"] == "not-covered"
    again = Agent(home, workspace)
    assert "updatedInput" in again.hook("PreToolUse", "Bash", {"command": "cat note.txt"})
    again.end()


def test_an_agent_that_called_a_hook_is_a_living_client_until_it_ends(home: Path, workspace: Path) -> None:
    agent = Agent(home, workspace)
    agent.hook("PreToolUse", "Read", {"file_path": str(workspace / "note.txt")})
    assert [(each.name, each.pid) for each in clients_alive(StateHome(str(home)))] == [("claude-code", agent.pid)]
    agent.end()
    assert clients_alive(StateHome(str(home))) == []
