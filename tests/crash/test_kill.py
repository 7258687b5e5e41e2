"""The host killed with `kill -9` during calls, at random moments: nothing acknowledged is lost, nothing stays open.

The oracle is independent of haft: the list of outcomes that the host was handed, sent over a pipe before it died.
`HAFT_TEST_KILLS` sets how many times (24 unless set; 400 where nothing is left out).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from haft.audit import entries, verify
from haft.contracts import TERMINAL
from haft.runs import Filter, History
from haft.service import recover_dead_hosts
from haft.storage import StateHome
from haft.storage.sqlite.audit_log import FileLog
from sampling import IS_WHOLE, chance

HOST = str(Path(__file__).with_name("host.py"))
CHUNKS = 5 if IS_WHOLE else 3
ROUNDS = -(-int(os.environ.get("HAFT_TEST_KILLS", "400" if IS_WHOLE else "24")) // CHUNKS)


def live_and_die(forge, workspace, home, seed: int, answers: int, moment: float) -> list[list]:
    """One host, killed `moment` seconds after so many answers, or with none of them after it began; what it had
    acknowledged. A busy machine makes it live longer, and not answer less."""
    forge.stdin.write(json.dumps([str(workspace), home, seed]) + "\n")
    forge.stdin.flush()
    words, host, is_killed = [], None, False
    while True:
        said = json.loads(forge.stdout.readline())
        if said[0] == "gone":
            assert is_killed, "a host ended by itself"
            return words
        if said[0] == "pid":
            host = said[1]
        else:
            words.append(said)
        if host is not None and not is_killed and len(words) >= answers:
            time.sleep(moment)
            os.kill(host, signal.SIGKILL)
            is_killed = True


def death(drawn: Random, round_: int) -> tuple[int, float]:
    """After how many answers, and how long after the last of them. In every fourth round, the first among them, the
    host is killed while it begins, or soon after."""
    if round_ % 4 == 0 and round_ < ROUNDS - 1:
        return 0, drawn.uniform(0.0, 0.2)
    return drawn.randint(1, 40), drawn.uniform(0.0, 0.05)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_after_every_kill_each_run_has_ended_the_record_is_intact_and_nothing_acknowledged_is_missing(tmp_path, chunk):
    workspace, home = tmp_path / "workspace", StateHome(str(tmp_path / "home"))
    workspace.mkdir()
    drawn = chance(f"moments {chunk}")
    acknowledged: dict[str, tuple[str, str | None]] = {}
    interrupted = 0
    with subprocess.Popen([sys.executable, HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forge:
        for round_ in range(ROUNDS):
            words = live_and_die(forge, workspace, home.path, chunk * 1000 + round_, *death(drawn, round_))
            acknowledged.update({run: (status, path) for run, status, path in words})
            interrupted += recovered(home)
            check(home, workspace, acknowledged)
        forge.stdin.close()
    assert acknowledged, "the hosts never came to answer a call"
    assert interrupted, "no host was killed during a call"


def recovered(home: StateHome) -> int:
    """Recover until no host is left to recover; how many runs were interrupted. A host killed just as it started its
    helper has a child that holds the lock for the moment between fork and exec."""
    interrupted, deadline = recover_dead_hosts(home), time.monotonic() + 10
    while os.path.isdir(home.hosts) and any(name.endswith(".lock") for name in os.listdir(home.hosts)):
        assert time.monotonic() < deadline, "a dead host's lock is still held"
        interrupted += recover_dead_hosts(home)
    return interrupted


def check(home: StateHome, workspace: Path, acknowledged) -> None:
    if not os.path.isdir(home.audit):
        return  # Killed before anything was there.
    history = History(home)
    runs = {run.id: run for run in history.runs(Filter(limit=1_000_000))}
    history.close()
    verdict = verify(FileLog(home.audit))
    assert verdict.intact, verdict.problem
    ends: dict[str, str] = {}
    for entry in entries(FileLog(home.audit)):
        if entry["type"] == "end":
            assert entry["run"] not in ends, "an end was recorded twice"
            ends[entry["run"]] = entry["status"]
    for run in runs.values():
        assert run.status in TERMINAL
        assert run.id in ends
        if run.id not in acknowledged and run.status == "error" and run.tool != "no_such_tool":
            assert run.record["error"]["code"] == "interrupted"
    for name, (status, path) in acknowledged.items():
        assert runs[name].status == status
        assert ends[name] == status
        if path is not None:
            assert (workspace / path).read_text().startswith(path)
    # A host killed before its lock had a name leaves an empty file that goes when it is old enough.
    left = [name for name in os.listdir(home.hosts) if not name.endswith(".tmp")]
    assert left == [], "a dead host was not cleaned up after"
