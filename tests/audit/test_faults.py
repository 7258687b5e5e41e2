"""The n-th write to disk fails, or is the last, for every n of a short session: nothing acknowledged is ever lost.

Each day three of the five kinds of failure are tried, at every fifth n.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from haft.audit import entries, verify
from haft.contracts import TERMINAL
from haft.runs import Filter, History
from haft.service import ToolService, open_history, recover_dead_hosts
from haft.storage import StateHome
from haft.storage.sqlite.audit_log import FileLog
from sampling import IS_WHOLE, some, steps

PROGRAM = str(Path(__file__).with_name("faulty.py"))


def told(directory, kind: str) -> dict[str, list[list]]:
    """What every host said, by the directory of its state."""
    stride = 1 if IS_WHOLE else 5
    words = [sys.executable, PROGRAM, directory, kind, str(steps(1, stride, kind).start), str(stride)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    hosts: dict[str, list[list]] = {str(path): [] for path in directory.iterdir()}
    for where, *words in map(json.loads, said.splitlines()):
        hosts[where].append(words)
    return hosts


# Torn are lines of journals, of the audit log and of outputs. A head is not: it is a single write of less than a page
# in
# place, of which no kill leaves a half.
@pytest.mark.parametrize("kind", some(["full", "stays-full", "broken", "die", "torn"], 3, "kinds of failing writes"))
def test_whichever_write_fails_nothing_acknowledged_is_lost_and_the_record_is_intact(tmp_path, kind):
    hosts = told(tmp_path, kind)
    assert len(hosts) > (15 if IS_WHOLE else 3)
    acknowledged = 0
    for directory, said in hosts.items():
        assert {words[0] for words in said} <= {"ack", "refused"}, (directory, said)
        home = StateHome(f"{directory}/home")
        recover_dead_hosts(home)
        recover_dead_hosts(home)
        verdict = verify(FileLog(home.audit))
        assert verdict.intact, (directory, verdict.problem)
        ends = {entry["run"]: entry["status"] for entry in entries(FileLog(home.audit)) if entry["type"] == "end"}
        runs = known_runs(home)
        assert all(run.status in TERMINAL for run in runs.values()), directory
        for _ack, run, status, code in (words for words in said if words[0] == "ack"):
            if code == "storage-failed":
                continue  # It says itself that it could not be written down.
            acknowledged += 1
            assert runs[run].status == status, directory
            assert ends[run] == status, directory
        asyncio.run(one_more_call(directory))
        assert verify(FileLog(home.audit)).intact
    assert acknowledged > len(hosts)


async def one_more_call(directory: str) -> None:
    """The next host works as if nothing had been."""
    async with ToolService.open(f"{directory}/workspace", home=f"{directory}/home", installed=False) as service:
        assert (await service.call("list_directory", {})).status == "done"


def known_runs(home: StateHome):
    history: History | None = open_history(home)
    if history is None:
        return {}
    try:
        return {run.id: run for run in history.runs(Filter(limit=1000))}
    finally:
        history.close()
