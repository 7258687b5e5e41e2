"""`haft connect AGENT` with the real agents: they list and call haft's tools, meet approvals, are cancelled, and what
they did is undone."""

import contextlib
import json
import os
import signal
import time

import pytest
from connected import Connected
from own_tools import AGENT_NAMES, haft

from haft.testing.scripted_model import say

PATIENCE = 240
RULES = """[[permissions]]
tool = "shell"
matches = {command = "sleep *"}
action = "allow"

[[permissions]]
tool = "shell"
matches = {command = "touch asked*"}
action = "ask"

[[permissions]]
tool = "*"
action = "allow"
"""


def until(condition, what):
    """Wait until something is true, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.2)
    return found


@pytest.fixture(scope="module", params=AGENT_NAMES)
def agent(request, tmp_path_factory, model):
    made = Connected(request.param, tmp_path_factory.mktemp(request.param), model.url, rules=RULES, patience=900)
    (made.workspace / "note.txt").write_text("old\n")
    yield made
    made.end()


def finished(process):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, f"{out}\n{err}"
    return out


def test_it_lists_hafts_tools_calls_shell_and_edit_file_and_its_changes_are_undone(agent, model):
    name = agent.real.id
    prompt = model.task(
        haft(name, "shell", command="echo from haft > made.txt; cat note.txt"),
        haft(name, "edit_file", path="note.txt", old_string="old", new_string="new"),
        say("done"),
    )
    done = agent.real.run(prompt)
    results = model.results(prompt)
    assert len(results) == 2, (done, model.tools(prompt))
    assert "old" in results[0] and (agent.workspace / "note.txt").read_text() == "new\n"
    runs = [run for run in agent.runs() if run["tool"] in ("shell", "edit_file")]
    assert [run["status"] for run in runs] == ["done", "done"]
    agent.haft("undo", *(run["id"] for run in runs))
    assert (agent.workspace / "note.txt").read_text() == "old\n" and not (agent.workspace / "made.txt").exists()


def test_an_approval_is_answered_from_the_inbox_while_the_agent_waits(agent, model):
    prompt = model.task(haft(agent.real.id, "shell", command="touch asked-while"), say("done"))
    process = agent.real.start(prompt, *agent.real.unattended)
    (waiting,) = until(agent.waiting, "nothing in the inbox")
    assert not (agent.workspace / "asked-while").exists()
    agent.haft("approve", waiting["id"])
    finished(process)
    assert (agent.workspace / "asked-while").exists()


def test_an_approval_is_answered_after_the_agents_limit_and_the_agent_waits_for_the_call(agent, model):
    name = agent.real.id
    if name != "codex":
        pytest.skip(
            {"opencode": "it has no limit while it gets progress"}.get(name, "its limit is ten minutes or more")
        )
    seen = {}

    def approve_and_wait():
        (waiting,) = agent.waiting()
        agent.haft("approve", waiting["id"])
        seen["run"] = waiting["run"]
        return haft(name, "wait", run=seen["run"])

    prompt = model.task(haft(name, "shell", command="touch asked-after"), approve_and_wait, say("done"))
    process = agent.real.start(prompt, *agent.real.unattended)
    process.communicate(timeout=900)
    first, second = model.results(prompt)
    assert seen["run"] in first
    assert (agent.workspace / "asked-after").exists(), second


def test_cancelled_in_the_middle_nothing_runs_on(agent, model):
    command = f"sleep 98{AGENT_NAMES.index(agent.real.id)}"
    prompt = model.task(haft(agent.real.id, "shell", command=command), say("done"))
    process = agent.real.start(prompt, *agent.real.unattended)

    def is_running():
        return [run for run in agent.runs() if command in json.dumps(run) and run["status"] == "in-progress"]

    (run,) = until(is_running, "the call did not start")
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(Exception):
        process.communicate(timeout=30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not is_running(), "the call runs on")
    (ended,) = [each for each in agent.runs() if each["id"] == run["id"]]
    # Claude Code and Gemini CLI kill the server within half a second: then the next host finds the run interrupted.
    assert ended["status"] in ("cancelled", "error")
    until(lambda: not any("sleep" in words for words in agent.alone()), "the command runs on")
