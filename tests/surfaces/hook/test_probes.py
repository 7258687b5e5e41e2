"""Which agents get rewritten lines: what one version did says nothing about another, also if no version is known."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hooking import Hook

from haft.surfaces.hook.agent_process import AgentProcess
from haft.surfaces.hook.line import hook_words

GIVEN = {"command": "cat note.txt"}


class Build:
    """A program that calls the hook, of which no version is known: a copy of bash. Its script is not in its words, in
    which the line of the hook would be."""

    def __init__(self, path: Path, hook: Hook) -> None:
        path.parent.mkdir()
        bash = shutil.which("bash")
        assert bash is not None
        shutil.copy(bash, path)
        self._path, self._hook, self._script, self._told = path, hook, path.parent / "script", path.parent / "told"
        line = shlex.join(hook_words("claude-code"))
        self._script.write_text(f"while read -r given; do {line} <<< $given; echo; done < {self._told}\nexit $?\n")

    def tells(self, *events: str) -> list[dict[str, Any]]:
        """The answers to these events of one command."""
        self._told.write_text("".join(f"{json.dumps(self._hook.event(event, 'Bash', GIVEN))}\n" for event in events))
        env = {**os.environ, "HAFT_HOME": str(self._hook.home), "CLAUDE_CODE_SESSION_ATTENDED": "1"}
        words = [self._path, self._script]
        done = subprocess.run(words, check=True, env=env, cwd=self._hook.workspace, capture_output=True, text=True)
        answers = done.stdout.split("\n")[: len(events)]
        return [json.loads(each)["hookSpecificOutput"] if each else {} for each in answers]


@pytest.fixture
def hook(warm_home: Path, tmp_path: Path) -> Hook:
    workspace = tmp_path / "work"
    workspace.mkdir()
    (workspace / "haft.toml").write_text("")
    return Hook(warm_home, workspace)


def test_a_program_of_no_known_version_says_nothing_about_another_one(hook: Hook, tmp_path: Path) -> None:
    one, other = Build(tmp_path / "one" / "agent", hook), Build(tmp_path / "other" / "agent", hook)
    [before, _after] = one.tells("PreToolUse", "PostToolUse")
    assert "updatedInput" in before
    assert one.tells("PreToolUse") == [{}], "it ran the original line"
    [before] = other.tells("PreToolUse")
    assert "updatedInput" in before
    with (tmp_path / "one" / "agent").open("ab") as file:
        file.write(b"newer")
    [before] = one.tells("PreToolUse")
    assert "updatedInput" in before


def test_a_program_that_was_removed_is_known_by_its_path() -> None:
    assert AgentProcess(1, ("claude", "-p"), "/nowhere/claude (deleted)").build() == "/nowhere/claude (deleted)"
    assert AgentProcess(1, ("/nowhere/1.2.3/claude",), "/nowhere/1.2.3/claude").build() == "1.2.3"
    assert AgentProcess(1).build() is None
