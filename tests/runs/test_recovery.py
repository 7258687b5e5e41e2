"""Recovery: only by who could take a dead host's lock, once, and harmlessly more often. With real processes."""

import asyncio
import os
import subprocess
import sys

import pytest

from haft.audit import entries, last_entries, verify
from haft.audit.chain import Chain
from haft.contracts import TERMINAL
from haft.runs import Filter, History, recover
from haft.service import ToolService, recover_dead_hosts
from haft.storage import StateHome, open_stores
from haft.storage.sqlite.audit_log import FileLog

HOST = """
import asyncio, os, sys
from haft.service import ToolService

async def yes(request):
    return True

async def main():
    async with ToolService.open(sys.argv[1], approver=yes, home=sys.argv[2], installed=False) as service:
        done = await service.call("list_directory", {})
        run = service.call("shell", {"command": "echo started; exec sleep 600"})
        async for event in run:
            if event.type == "stdout":
                os.write(1, f"{done.run_id} {run.id}\\n".encode())
                break
        await run

asyncio.run(main())
"""


@pytest.fixture
def host(tmp_path):
    """A host in the middle of a call, in a process of its own."""
    (tmp_path / "workspace").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, tmp_path / "workspace", tmp_path / "home"], stdout=subprocess.PIPE
    )
    process.runs = process.stdout.readline().decode().split()
    process.home = StateHome(str(tmp_path / "home"))
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def statuses(home) -> dict[str, str]:
    history = History(home)
    try:
        return {run.id: run.status for run in history.runs(Filter(limit=1000))}
    finally:
        history.close()


RECOVERING = """
import sys
from haft.service import recover_dead_hosts
from haft.storage import StateHome, open_stores
print(recover_dead_hosts(StateHome(sys.argv[1])))
"""


def recovered_elsewhere(home, at_once: int = 1) -> list[int]:
    """How many runs each of some processes interrupted."""
    processes = [
        subprocess.Popen([sys.executable, "-c", RECOVERING, home.path], stdout=subprocess.PIPE) for _ in range(at_once)
    ]
    return [int(process.communicate()[0]) for process in processes]


def test_while_a_host_lives_nobody_recovers_it(host):
    assert recovered_elsewhere(host.home, 3) == [0, 0, 0]
    assert recover_dead_hosts(host.home) == 0
    assert statuses(host.home) == {host.runs[0]: "done", host.runs[1]: "in-progress"}
    assert host.poll() is None


def test_after_a_kill_exactly_one_of_those_who_come_recovers_it_and_twice_is_harmless(host):
    host.kill()
    host.wait()
    assert sorted(recovered_elsewhere(host.home, 4)) == [0, 0, 0, 1]
    assert recovered_elsewhere(host.home) == [0]
    assert statuses(host.home) == {host.runs[0]: "done", host.runs[1]: "error"}
    history = History(host.home)
    interrupted = history.find(host.runs[1])
    history.close()
    assert interrupted.record["error"]["code"] == "interrupted"
    assert interrupted.states()[-1].status == "error"
    ends = [entry["run"] for entry in entries(FileLog(host.home.audit)) if entry["type"] == "end"]
    assert sorted(ends) == sorted(host.runs)
    assert verify(FileLog(host.home.audit)).intact
    assert os.listdir(host.home.hosts) == []


COUNTING = """
import sys
from haft.service import recover_dead_hosts
from haft.storage import StateHome

def read_so_far():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])

before = read_so_far()
assert recover_dead_hosts(StateHome(sys.argv[1])) == 1
print(read_so_far() - before)
"""


@pytest.fixture
def long_log(tmp_path):
    """An audit log of 60 MB, written before any host is there."""
    home = StateHome(str(tmp_path / "home"))
    home.prepare()
    chain = Chain(FileLog(home.audit))
    for _ in range(6):
        chain.append([b'{"type":"end","run":"r_0","ballast":"%s"}' % (b"x" * 50_000)] * 200)
    chain.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="only Linux counts what a process reads")
def test_recovery_reads_only_the_end_of_a_long_audit_log(long_log, host):
    host.kill()
    host.wait()
    said = subprocess.run([sys.executable, "-c", COUNTING, host.home.path], capture_output=True, text=True, check=True)
    assert int(said.stdout) < 30_000_000, "modules and a few lines, not the log"
    last = last_entries(FileLog(host.home.audit), 10)
    assert {entry["run"] for entry in last} == {"r_0", *host.runs}
    assert verify(FileLog(host.home.audit), most=1_000_000).intact


def test_the_next_service_recovers_when_it_opens(host, tmp_path):
    host.kill()
    host.wait()

    async def go():
        async with ToolService.open(tmp_path / "workspace", home=host.home.path, installed=False) as service:
            return service.run(host.runs[1])

    assert asyncio.run(go()).status == "error"


def test_a_recovery_that_dies_at_any_step_is_finished_by_the_next(home, entry, tmp_path):
    class Killed(BaseException):
        pass

    from haft.runs import Journal

    for step in range(1, 4):
        lease = open_stores(home).leases().take()
        journal = Journal(home.hosts, lease.host)
        done, left = entry(host=lease.host, recorded=False), entry(host=lease.host, status="in-progress")
        journal.append(left.line)
        journal.append(done.line)
        journal.rotate()
        lease.release(done=False)  # As the kernel does when the process is gone.
        told, calls = [], 0

        def tell(records, _since, step=step, told=told):
            nonlocal calls
            calls += 1
            if calls == step:
                raise Killed
            told.extend(records)

        if step < 3:
            with pytest.raises(Killed):
                recover(home, None, tell)
            calls = 3
            told.clear()
        assert recover(home, None, tell) == 1
        assert all(status in TERMINAL for status in statuses(home).values())
        assert statuses(home)[done.run] == "done"
        assert statuses(home)[left.run] == "error"
        assert len(told) == 2
        assert recover(home, None, tell) == 0


def test_a_service_that_closed_properly_leaves_nothing_to_recover(tmp_path):
    (tmp_path / "workspace").mkdir()

    async def go():
        async with ToolService.open(tmp_path / "workspace", home=tmp_path / "home", installed=False) as service:
            await asyncio.gather(*(service.call("list_directory", {}) for _ in range(20)))

    asyncio.run(go())
    home = StateHome(str(tmp_path / "home"))
    assert os.listdir(home.hosts) == []
    assert recover_dead_hosts(home) == 0
    assert list(statuses(home).values()) == ["done"] * 20


def test_what_a_host_leaves_that_died_before_its_lock_had_a_name_is_removed_when_it_is_old(home):
    for name, age in (("h_1.lock.aa.tmp", 0), ("h_2.lock.bb.tmp", 3600)):
        path = os.path.join(home.hosts, name)
        os.close(os.open(path, os.O_CREAT))
        os.utime(path, (os.stat(path).st_mtime - age,) * 2)
    assert recover(home, None, lambda _records, _since: None) == 0
    assert os.listdir(home.hosts) == ["h_1.lock.aa.tmp"]


MANY = """
import asyncio, os, sys
from haft.service import ToolService
sys.stdin.readline()

async def main():
    async with ToolService.open(sys.argv[1], home=sys.argv[2], installed=False, who=sys.argv[3]) as service:
        for _ in range(5):
            outcomes = await asyncio.gather(*(service.call("list_directory", {}) for _ in range(20)))
            os.write(1, "".join(f"{outcome.run_id}\\n" for outcome in outcomes).encode())

asyncio.run(main())
"""


def test_several_hosts_that_write_into_one_home_at_once_lose_no_run(tmp_path):
    (tmp_path / "workspace").mkdir()
    hosts = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, tmp_path / "workspace", tmp_path / "home", f"host {n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for n in range(4)
    ]
    for host in hosts:
        host.stdin.write(b"go\n")
        host.stdin.flush()
    said = [host.communicate() for host in hosts]
    assert [complaint for _, complaint in said] == [b""] * 4
    acknowledged = {run for words, _ in said for run in words.decode().split()}
    assert len(acknowledged) == 400
    home = StateHome(str(tmp_path / "home"))
    assert set(statuses(home)) == acknowledged
    verdict = verify(FileLog(home.audit))
    assert verdict.intact, verdict.problem
    assert {entry["run"] for entry in entries(FileLog(home.audit)) if entry["type"] == "end"} == acknowledged


# A full disk.


@pytest.fixture
def small_disk(tmp_path):
    """A filesystem of its own, small enough to fill."""
    where = tmp_path / "small"
    where.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small filesystem")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", where], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode()}")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


def test_a_full_disk_ends_calls_with_storage_failed_and_the_next_one_works_when_there_is_room(small_disk, tmp_path):
    (tmp_path / "workspace").mkdir()
    home = StateHome(str(small_disk / "home"))

    def fill():
        with open(small_disk / "ballast", "ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    async def yes(_request):
        return True

    async def go():
        async with ToolService.open(tmp_path / "workspace", approver=yes, home=home.path, installed=False) as service:
            first = await service.call("list_directory", {})
            failed = []
            for _ in range(50):
                fill()
                failed += [
                    await service.call("list_directory", {"path": "."}),
                    await service.call("write_file", {"path": "never", "content": "x" * 5000}),
                ]
                if all(outcome.status == "error" for outcome in failed[-2:]):
                    break
                await asyncio.sleep(0.01)
            assert {outcome.error.code for outcome in failed if outcome.error} == {"storage-failed"}
            assert not (tmp_path / "workspace" / "never").exists() or any(outcome.ok for outcome in failed)
            os.unlink(small_disk / "ballast")
            last = await service.call("write_file", {"path": "now", "content": "x"})
            assert (first.status, last.status) == ("done", "done")
            return first.run_id, last.run_id, [outcome.run_id for outcome in failed if outcome.ok]

    first, last, meanwhile = asyncio.run(go())
    recover_dead_hosts(home)
    found = statuses(home)
    assert {found[run] for run in (first, last, *meanwhile)} == {"done"}
    assert set(found.values()) <= TERMINAL
    verdict = verify(FileLog(home.audit))
    assert verdict.intact, verdict.problem
