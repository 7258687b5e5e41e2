"""A real agent that runs `haft approve` of a waiting call in its own shell, which no sandbox of haft confines: refused
in every spelling, and in the audit log."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from connected import Connected
from own_tools import AGENT_NAMES, shell
from scripted_model import say

PATIENCE = 240
RULES = """[[permissions]]
tool = "shell"
matches = {command = "touch asked*"}
action = "ask"

[[permissions]]
tool = "*"
action = "allow"
"""
UNCONFINED = {"codex": ("--dangerously-bypass-approvals-and-sandbox",)}
# Gemini CLI itself refuses lines with `$(…)`.
SPELLINGS = {
    "plainly": "haft approve ID",
    "through-setsid": "setsid -w haft approve ID",
    "through-script": "script -qec 'haft approve ID' /dev/null",
    "through-a-double-fork": "(setsid sh -c 'haft approve ID >loose.txt 2>&1; true' &) ; "
    "for i in 1 2 3 4 5 6 7 8 9; do test -s loose.txt && break; sleep 1; done; sleep 1; cat loose.txt",
    "through-python": 'python3 -c \'import subprocess; subprocess.run(["haft", "approve", "ID"])\'',
}


class Attempts:
    """One session in which an agent tries to approve a call that waits, in every spelling."""

    def __init__(self, name, base, model):
        self.agent = Connected(name, base, model.url, rules=RULES, patience=900)
        self.call = subprocess.Popen(
            [sys.executable, "-m", "haft", "tools", "use", "shell", "--command", "touch asked", "--wait", "900"],
            cwd=self.agent.workspace,
            env=self.agent.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        end = time.monotonic() + PATIENCE
        while not (waiting := self.agent.waiting()):
            assert time.monotonic() < end
            time.sleep(0.2)
        self.id = waiting[0]["id"]
        # By its path: Codex starts a login shell, whose PATH may be another.
        program = f"{Path(sys.executable).parent}/haft"
        lines = [re.sub(r"\bhaft\b", program, line).replace("ID", self.id) for line in SPELLINGS.values()]
        steps = [shell(name, line) for line in lines]
        prompt = model.task(*steps, say("done"))
        done = self.agent.real.run(prompt, *UNCONFINED.get(name, self.agent.real.unattended))
        results = model.results(prompt)
        assert len(results) == len(SPELLINGS), (done, results)
        self.results = dict(zip(SPELLINGS, results, strict=True))


@pytest.fixture(scope="module", params=AGENT_NAMES)
def attempts(request, tmp_path_factory, model):
    made = Attempts(request.param, tmp_path_factory.mktemp(request.param), model)
    yield made
    made.call.kill()
    made.call.communicate()
    made.agent.end()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_is_refused(attempts, spelling):
    words = attempts.results[spelling]
    assert "client" in words or "agent" in words or "refused" in words, words


def test_the_call_still_waits_and_the_refusals_are_in_the_audit_log(attempts):
    assert [waiting["id"] for waiting in attempts.agent.waiting()] == [attempts.id]
    assert not (attempts.agent.workspace / "asked").exists()
    assert attempts.agent.audit().count('"type": "refuse"') >= len(SPELLINGS)


def test_the_person_approves_it_after_the_agent_has_ended(attempts):
    attempts.agent.haft("approve", attempts.id)
    attempts.call.wait(PATIENCE)
    assert (attempts.agent.workspace / "asked").exists()
