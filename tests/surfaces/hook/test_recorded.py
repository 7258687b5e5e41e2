"""Sessions of real agents, played again: every hook through `start.py` and a resident, every rewritten line in bash."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hooking import Hook
from recordings import NAMES, recorded

import sampling
from haft.service import Filter, StateHome, open_history
from haft.surfaces.hook.formats import FORMATS
from haft.surfaces.hook.never_run import never_run

PROVES = "echo hello"
"""The first command of each recording only writes to stdout: it proves that the agent runs rewritten lines."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "sub").mkdir(parents=True)
    (made / "haft.toml").write_text("")
    (made / "note.txt").write_text("old\n")
    config = tmp_path / "config" / "haft"
    config.mkdir(parents=True)
    rules = "".join(
        f'[[permissions]]\ntool = "{tool}"\naction = "allow"\n' for tool in ("shell", "edit_file", "write_file")
    )
    (config / "haft.toml").write_text(rules)
    return made


def answer_of(agent: str, stdout: str) -> tuple[str | None, str | None]:
    """The decision and the rewritten command in an answer."""
    told: dict[str, Any] = json.loads(stdout) if stdout else {}
    specific = told.get("hookSpecificOutput", {})
    new = specific.get("updatedInput") or specific.get("tool_input") or told.get("args") or {}
    is_denied = "deny" in told or told.get("decision") == "deny"
    return ("deny" if is_denied else specific.get("permissionDecision")), new.get("command")


def drawn() -> list[str]:
    """One session of each agent, or all."""
    if not sampling.IS_DAILY:
        return [*NAMES]
    of_agent: dict[str, list[str]] = {}
    for name in NAMES:
        of_agent.setdefault(recorded(name)[0], []).append(name)
    return [sampling.some(names, 1, f"recorded sessions of {agent}")[0] for agent, names in of_agent.items()]


@pytest.mark.parametrize("name", drawn())
def test_a_session_runs_as_it_did_without_haft(
    home: Path, workspace: Path, name: str, haft: Callable[..., str]
) -> None:
    agent, given = recorded(name, str(workspace))
    config = str(workspace.parent / "config")
    hook = Hook(home, workspace, agent, XDG_CONFIG_HOME=config, CLAUDE_CODE_SESSION_ATTENDED="0")
    edits, shells = 0, 0
    told = {FORMATS[agent].read(each, "/").call for each in given if "tool_response" in each or "output" in each}
    for each in given:
        event = FORMATS[agent].read(each, str(workspace))
        ended = hook.run(each)
        assert (ended.returncode, ended.stderr) == (0, "")
        decision, line = answer_of(agent, ended.stdout)
        if event.phase == "after":
            assert ended.stdout == ""
            continue
        shell = event.meaning.shell
        if shell is not None and "sleep" not in shell.command:
            assert decision == ("allow" if agent in ("claude-code", "codex") else None)
            assert line is not None
            assert shell.command in line.replace("'\"'\"'", "'")
            shown, _, launched = line.partition(f"; {home}/hook/haft-shell t_")
            assert launched, "the commands for the agent's own rules come first"
            assert shown == never_run(shell.command, is_plain=agent == "codex")
            assert ("{" in shown) == (agent != "codex"), "Codex reads no groups"
            with_haft = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=shell.cwd)
            plain = subprocess.run(["bash", "-c", shell.command], capture_output=True, text=True, cwd=shell.cwd)
            assert (with_haft.returncode, with_haft.stdout) == (plain.returncode, plain.stdout), with_haft.stderr
            shells += 1
        elif shell is None:
            assert (decision, line) == (None, None)
            edits += len(event.meaning.files) > 0
            for file in event.meaning.files if event.call in told or agent == "gemini" else ():
                Path(file).write_text(f"{event.call} {edits}\n")
    if agent != "codex" or name == "codex":
        assert edits
    assert shells
    found = runs(home)
    assert {run["who"] for run in found} == {agent}
    assert sum(run["tool"] == "shell" and run["status"] != "queued" for run in found) >= shells
    changed = [run for run in found if run["tool"].startswith(f"{agent}:") and run["changes"]["files"]]
    ended_edits = [run for run in changed if run["changes"]["state"] == "committed"]
    # Undone in this order, each of them is the newest of its files.
    for run in ended_edits[: None if sampling.IS_WHOLE else 3]:
        haft(home, workspace, "undo", run["run"])


def runs(home: Path) -> list[dict[str, Any]]:
    history = open_history(StateHome(str(home)))
    assert history is not None
    try:
        return [{**each.rest, **each.record} for each in history.runs(Filter(limit=200))]
    finally:
        history.close()
