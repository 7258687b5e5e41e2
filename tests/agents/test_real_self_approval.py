"""A real agent that runs `haft approve` of a waiting call in its own shell, which no sandbox of haft confines: refused
in every spelling, and in the audit log. And an agent that writes the approval into haft's database: it counts, unless
an approval passphrase is set."""

import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from connected import Connected
from own_tools import AGENT_NAMES, shell
from schedulers import schedulers

from haft.policy import Answered
from haft.service import InboxFacade, StateHome
from haft.storage import encode
from haft.testing.scripted_model import say

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


def until_there(file, seconds=9):
    """A line that waits for the output of a command in the background, and shows it. Gemini CLI itself refuses lines
    with `$(…)`, and Codex waits at most half a minute for a command."""
    numbers = " ".join(map(str, range(seconds)))
    return f"for i in {numbers}; do test -s {file} && break; sleep 1; done; sleep 1; cat {file}"


SPELLINGS = {
    "plainly": ["haft approve ID"],
    "through-setsid": ["setsid -w haft approve ID"],
    "through-script": ["script -qec 'haft approve ID' /dev/null"],
    "through-a-double-fork": [f"(setsid sh -c 'haft approve ID >loose.txt 2>&1; true' &) ; {until_there('loose.txt')}"],
    "through-python": ['python3 -c \'import subprocess; subprocess.run(["haft", "approve", "ID"])\''],
    "through-at": ["echo 'haft approve ID >at.txt 2>&1' | at now", until_there("at.txt")],
    "through-cron": [
        "echo '* * * * * cd PLACE && HAFT_HOME=HOME haft approve ID >cron.txt 2>&1' | crontab -",
        *[until_there("cron.txt", 24)] * 3,  # cron looks once a minute.
    ],
}
"""The lines of each spelling: the last one shows what `haft approve` said."""
NEEDS = {"through-at": "at", "through-cron": "crontab"}

FORGING = """import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30)
database.execute("UPDATE approvals SET state = 'answered', answer = ? WHERE id = ?", sys.argv[2:])
database.commit()
print("changed", database.total_changes)
"""


class Waiting:
    """A call that waits for an answer, and an agent beside it that uses haft over MCP."""

    def __init__(self, name, base, model, secret=None):
        self.name = name
        self.agent = Connected(name, base, model.url, rules=RULES, patience=900)
        if secret is not None:
            (base / "secret").write_text(secret)
            self.agent.haft("approval", "secret", "--new", str(base / "secret"))
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
        self._model = model

    def let_run(self, lines):
        """Let the agent run these lines in its own shell, one after the other. Returns what each of them said."""
        prompt = self._model.task(*(shell(self.name, line) for line in lines), say("done"))
        done = self.agent.real.run(prompt, *UNCONFINED.get(self.name, self.agent.real.unattended))
        results = self._model.results(prompt)
        assert len(results) == len(lines), (done, results)
        return results

    def end(self):
        self.call.kill()
        self.call.communicate()
        self.agent.end()


class Attempts(Waiting):
    """One session in which an agent tries to approve a call that waits, in every spelling."""

    def __init__(self, name, base, model):
        super().__init__(name, base, model)
        self.results = {}
        self._try([spelling for spelling in SPELLINGS if spelling not in NEEDS])
        with schedulers() as self.missing:
            self._try([spelling for spelling, program in NEEDS.items() if program not in self.missing])

    def _try(self, spellings):
        # By its path: Codex starts a login shell, whose PATH may be another.
        program = f"{Path(sys.executable).parent}/haft"
        places = {"ID": self.id, "PLACE": str(self.agent.workspace), "HOME": self.agent.env["HAFT_HOME"]}
        lines, last = [], {}
        for spelling in spellings:
            lines += SPELLINGS[spelling]
            last[spelling] = len(lines) - 1
        lines = [re.sub(r"\bhaft\b(?=[ \"])", program, line) for line in lines]
        lines = [re.sub(r"\b(ID|PLACE|HOME)\b(?!=)", lambda found: places[found[0]], line) for line in lines]
        results = self.let_run(lines) if lines else []
        self.results |= {spelling: results[number] for spelling, number in last.items()}


@pytest.fixture(scope="module", params=AGENT_NAMES)
def attempts(request, tmp_path_factory, model):
    made = Attempts(request.param, tmp_path_factory.mktemp(request.param), model)
    yield made
    made.end()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_is_refused(attempts, spelling):
    if spelling not in attempts.results:
        pytest.skip(attempts.missing[NEEDS[spelling]])
    words = attempts.results[spelling]
    assert "client" in words or "agent" in words or "refused" in words, words


def test_the_call_still_waits_and_the_refusals_are_in_the_audit_log(attempts):
    assert [waiting["id"] for waiting in attempts.agent.waiting()] == [attempts.id]
    assert not (attempts.agent.workspace / "asked").exists()
    assert attempts.agent.audit().count('"type": "refuse"') >= len(attempts.results)


def test_the_person_approves_it_after_the_agent_has_ended(attempts):
    attempts.agent.haft("approve", attempts.id)
    attempts.call.wait(PATIENCE)
    assert (attempts.agent.workspace / "asked").exists()


def forge(waiting):
    """Let the agent write an approval into the database, as haft itself writes one."""
    home = StateHome(waiting.agent.env["HAFT_HOME"])
    with contextlib.closing(InboxFacade(home)) as inbox:
        (request,) = inbox.waiting()
    answered = Answered(approved=True, who="ann", seen=request.digest, at=time.time())
    answer = encode(answered.to_json()).decode()
    (waiting.agent.workspace / "forge.py").write_text(FORGING)
    line = f"python3 forge.py {home.database} '{answer}' {waiting.id}"
    (said,) = waiting.let_run([line])
    assert "changed 1" in said, said


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_an_approval_in_the_database_counts_if_no_passphrase_is_set(name, tmp_path, model):
    waiting = Waiting(name, tmp_path, model)
    try:
        forge(waiting)
        waiting.call.wait(PATIENCE)
        assert (waiting.agent.workspace / "asked").exists(), "docs/concepts/self-approval.md says that it counts"
    finally:
        waiting.end()


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_with_a_passphrase_an_approval_in_the_database_is_refused_and_in_the_audit_log(name, tmp_path, model):
    waiting = Waiting(name, tmp_path, model, secret="correct horse")
    try:
        forge(waiting)
        end = time.monotonic() + PATIENCE
        while '"type": "refuse"' not in waiting.agent.audit():
            assert time.monotonic() < end
            time.sleep(0.2)
        assert "the answer has no proof of the approval passphrase" in waiting.agent.audit()
        assert [each["id"] for each in waiting.agent.waiting()] == [waiting.id]
        assert not (waiting.agent.workspace / "asked").exists()
        waiting.agent.haft("approve", waiting.id, "--passphrase", str(tmp_path / "secret"))
        waiting.call.wait(PATIENCE)
        assert (waiting.agent.workspace / "asked").exists()
    finally:
        waiting.end()
