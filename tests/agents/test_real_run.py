"""`haft run` around real agents: Claude Code and Codex, with the scripted model on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from real_agents import AGENTS
from scripted_model import ScriptedModel, call, say

HAFT = [sys.executable, "-m", "haft"]
FLAGS = {"claude-code": ("--dangerously-skip-permissions",), "codex": ("-c", 'approval_policy="never"')}
GRANTED = {"claude-code": ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX"), "codex": ("MODEL_KEY",)}


@pytest.fixture
def model():
    with ScriptedModel() as served:
        yield served


@pytest.fixture(params=["claude-code", "codex"])
def agent(request, model):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as base:
        made = AGENTS[request.param](Path(base), model.url)
        made.env["IS_SANDBOX"] = "1"
        made.env["XDG_CONFIG_HOME"] = f"{base}/config"
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            made.env.pop(name)
        (made.home / ".ssh").mkdir()
        (made.home / ".ssh" / "id").write_text("a secret of the person")
        (made.workspace / "note.txt").write_text("old\n")
        yield made


def haft(agent, *words, **more):
    return subprocess.run(
        [*HAFT, *words], cwd=agent.workspace, env=agent.env, capture_output=True, text=True, timeout=180, **more
    )


def own_shell(agent, command):
    return call("Bash", command=command) if agent.id == "claude-code" else call("exec_command", cmd=command)


def run(agent, model, *steps):
    prompt = model.task(*steps, say("finished"))
    agent.prompt = prompt
    grants = [word for name in GRANTED[agent.id] for word in ("--env", name)]
    host = model.url.removeprefix("http://")
    words = [*agent.command, *agent.headless(prompt), *FLAGS[agent.id]]
    return haft(agent, "run", f"--network={host}", *grants, "--", *words, stdin=subprocess.DEVNULL)


def test_it_works_in_the_run_and_its_changes_are_applied_in_part(agent, model):
    done = run(
        agent,
        model,
        own_shell(agent, "echo new > made.txt; echo other > other.txt; echo more >> note.txt; cat note.txt"),
        own_shell(agent, "cat ~/.ssh/id; curl -sS --max-time 3 http://198.51.100.7/ ; git push 2>&1; echo tried"),
    )
    assert "finished" in done.stdout, done.stdout + done.stderr
    results = "\n".join(model.results(agent.prompt))
    assert "more" in results and "tried" in results and "a secret of the person" not in results
    assert (agent.workspace / "note.txt").read_text() == "old\n"
    (held,) = [row for row in json.loads(haft(agent, "changes", "list", "--json").stdout) if row["tool"] == "program"]
    assert haft(agent, "changes", "apply", held["run"], "made.txt").returncode == 0
    assert haft(agent, "changes", "drop", held["run"]).returncode == 0
    assert (agent.workspace / "made.txt").read_text() == "new\n" and not (agent.workspace / "other.txt").exists()
