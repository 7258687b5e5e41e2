"""Several processes on one storage, and processes that are killed in the middle of a write."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from haft.audit import entries, verify
from haft.storage import Filter, decode

sys.path.insert(0, str(Path(__file__).parent))
from storages import HERE, WAITING

BEGIN = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from storages import home_at
from haft.storage import Answered, decode, open_stores
stores = open_stores(home_at(sys.argv[2], sys.argv[3]))
connection = stores.connect()
who = sys.argv[4]
sys.stdin.readline()
"""

PAIRS = """
number = 0
facts = {"tool": "add", "status": "done", "who": who, "thread": "T", "parent": None, "workspace": "/w",
         "changes": {"files": []}, "ballast": "x" * 3000}
while number < int(sys.argv[5]):
    pair = [f"r_{who}{number:010d}{half}" for half in "ab"]
    records = [{"run": run, **facts} for run in pair]
    rest = {"host": "h", "startedAt": 1.0, "endedAt": 2.0, "noted": [[0, 1.0, "progress", "done", {}]]}
    connection.runs.put([json.dumps({"record": record, "rest": rest}).encode() for record in records])
    number += 1
    os.write(1, f"{pair[0]}\\n".encode())
"""


def started(program, kind, home, *words, count=2):
    """Processes that begin at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", BEGIN + program, HERE, kind, home.path, str(number), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(count)
    ]
    for process in processes:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    return processes


def said(processes):
    return [process.communicate()[0].decode().split() for process in processes]


def test_two_processes_that_write_at_once_lose_nothing(kind, home, connection):
    acknowledged = said(started(PAIRS, kind, home, "20"))
    assert [len(names) for names in acknowledged] == [20, 20]
    kept = {decode(text)["record"]["run"] for text in connection.runs.select(Filter(limit=1000))}
    assert kept == {name[:-1] + half for names in acknowledged for name in names for half in "ab"}


def test_what_a_killed_process_acknowledged_is_there_and_what_it_had_begun_is_there_whole_or_not_at_all(
    kind, home, connection
):
    for killed in range(1, 4):
        processes = started(PAIRS, kind, home, "1000000", count=1)
        acknowledged = [processes[0].stdout.readline().decode().strip() for _ in range(killed * 5)]
        processes[0].kill()
        acknowledged += said(processes)[0]
        kept = {decode(text)["record"]["run"] for text in connection.runs.select(Filter(limit=100_000))}
        assert set(acknowledged) <= kept
        assert {run[:-1] + "a" for run in kept} == {run for run in kept if run.endswith("a")}
        assert len(kept) % 2 == 0
        for run in kept:
            assert len(connection.runs.events_of(run)) == 1
    connection.runs.request_cancel("r_after", "me", 1.0)
    assert connection.runs.take_cancels({"r_after"}) == [("r_after", "me")], "the next one can write"


ANSWERING = """
for number in range(int(sys.argv[5])):
    name = f"a_{number}"
    if connection.approvals.answer(name, Answered(approved=True, who=who, seen="", at=1.0)):
        os.write(1, f"{name}\\n".encode())
"""


def test_of_processes_that_answer_the_same_requests_one_is_first_with_each(kind, home, connection):
    for number in range(20):
        connection.approvals.put(replace(WAITING, id=f"a_{number}"), forget_before=0.0)
    answered = said(started(ANSWERING, kind, home, "20", count=3))
    assert sorted(name for names in answered for name in names) == sorted(f"a_{number}" for number in range(20))
    for who, names in enumerate(answered):
        assert all(connection.approvals.answer_to(name).who == str(who) for name in names)


TAKING = """
for lease in stores.leases().dead(None):
    os.write(1, f"{lease.host}\\n".encode())
    lease.release(done=True)
"""


def test_of_processes_that_find_dead_hosts_one_takes_over_from_each(kind, home, stores):
    dead = [stores.leases().take() for _ in range(5)]
    for lease in dead:
        lease.release(done=False)
    taken = said(started(TAKING, kind, home, count=3))
    assert sorted(host for hosts in taken for host in hosts) == sorted(lease.host for lease in dead)


APPENDING = """
from haft.audit.chain import Chain
chain = Chain(stores.audit_log())
number = 0
while number < int(sys.argv[5]):
    name = f"{sys.argv[6]}-{who}-{number}".encode()
    chain.append([b'{"type":"end","run":"%s"}' % name])
    os.write(1, name + b"\\n")
    number += 1
"""


def test_the_audit_log_of_several_writers_is_one_chain_also_when_one_is_killed(kind, home, stores):
    writers = started(APPENDING, kind, home, "30", "writer")
    (victim,) = started(APPENDING, kind, home, "1000000", "victim", count=1)
    acknowledged = [victim.stdout.readline().decode().strip() for _ in range(10)]
    victim.kill()
    acknowledged += [name for names in said([victim, *writers]) for name in names]
    acknowledged += said(started(APPENDING, kind, home, "1", "next", count=1))[0]
    log = stores.audit_log()
    verdict = verify(log)
    assert verdict.intact, verdict.problem
    runs = [entry["run"] for entry in entries(log) if "run" in entry]
    assert set(acknowledged) <= set(runs)
    assert len(runs) == len(set(runs))
