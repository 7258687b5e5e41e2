"""`haft run` around real agents: Claude Code and Codex, with the scripted model on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from real_agents import AGENTS

from haft.testing.scripted_model import ScriptedModel, call, say

HAFT = [sys.executable, "-m", "haft"]
FLAGS = {"claude-code": ("--dangerously-skip-permissions",), "codex": ("-c", 'approval_policy="never"')}
GRANTED = {"claude-code": ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX"), "codex": ("MODEL_KEY",)}


@pytest.fixture
def model():
    with ScriptedModel(without_tools="ok") as served:
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


def tmux(agent, *words):
    socket = str(agent.base / "tmux")
    return subprocess.run(["tmux", "-S", socket, *words], env=agent.env, capture_output=True, text=True, timeout=30)


LEAVING = {
    "claude-code": (("C-c", "C-c"), ("C-d",)),
    "codex": (("C-c",), ("C-c",), ("C-d",)),
}
"""The keys that end an agent, until one of them does."""


def screen_with(agent, text, seconds=90):
    """The screen, as soon as it shows the text."""
    end = time.monotonic() + seconds
    while text not in (seen := tmux(agent, "capture-pane", "-p", "-S", "-200").stdout):
        assert time.monotonic() < end, seen
        time.sleep(0.2)
    return seen


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not on this machine")
def test_on_a_terminal_it_works_and_the_person_reviews_its_changes(agent, model):
    prompt = model.task(own_shell(agent, "echo new > made.txt; stty size < /dev/tty"), say("finished here"))
    grants = [word for name in GRANTED[agent.id] for word in ("--env", name)]
    host = model.url.removeprefix("http://")
    program = [*agent.command, *agent.words(prompt), *FLAGS[agent.id]]
    words = [*HAFT, "run", "-q", f"--network={host}", *grants, "--", *program]
    tmux(agent, "new-session", "-d", "-x", "110", "-y", "40", "-c", str(agent.workspace), shlex.join(words))
    tmux(agent, "set-option", "remain-on-exit", "on")
    try:
        if agent.id == "claude-code":
            screen_with(agent, "Bypass Permissions")
            tmux(agent, "send-keys", "Down")
            tmux(agent, "send-keys", "Enter")
        screen_with(agent, "finished here")
        for keys in LEAVING[agent.id]:
            tmux(agent, "send-keys", *keys)
            with contextlib.suppress(AssertionError):  # A key that is not needed would answer haft's question.
                screen_with(agent, "Apply these changes?", seconds=8)
                break
        screen_with(agent, "Apply these changes?")
        tmux(agent, "send-keys", "y", "Enter")
        screen_with(agent, "are in the workspace")
    finally:
        tmux(agent, "kill-server")
    assert (agent.workspace / "made.txt").read_text() == "new\n"


@pytest.mark.parametrize("victim", ["haft", "agent"])
def test_killed_in_the_middle_nothing_is_half_done_and_nothing_runs_on(agent, model, victim):
    mark = f"sleep 3{os.getpid()}"
    prompt = model.task(own_shell(agent, f"echo new > made.txt; {mark}"), say("never"))
    grants = [word for name in GRANTED[agent.id] for word in ("--env", name)]
    host = model.url.removeprefix("http://")
    words = [*agent.command, *agent.headless(prompt), *FLAGS[agent.id]]
    process = subprocess.Popen(
        [*HAFT, "run", f"--network={host}", *grants, "--", *words],
        cwd=agent.workspace,
        env=agent.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: processes(mark))
    if victim == "haft":
        process.kill()
    else:
        for pid in processes(prompt):
            if Path(f"/proc/{pid}/cmdline").read_text().startswith(agent.command[0]):
                os.kill(pid, 9)
    process.wait(timeout=60)
    until(lambda: not processes(mark))
    assert sorted(os.listdir(agent.workspace)) == [".git", "note.txt"]
    assert haft(agent, "log").returncode == 0


def processes(words):
    """The ids of the processes that have these words in their command line."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if words in line.replace(b"\0", b" ").decode("utf-8", "replace"):
            found.append(int(name))
    return [pid for pid in found if pid != os.getpid()]


def until(look):
    end = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found
