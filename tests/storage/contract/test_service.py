"""A whole service on the second storage: nothing above `storage` knows which one it is."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from haft.service import ToolService, open_changes, open_history, recover_dead_hosts
from haft.storage import open_stores

sys.path.insert(0, str(Path(__file__).parent))
from storages import HERE, home_at

BEGIN = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from storages import home_at
from haft.contracts import Principal
from haft.service import InboxFacade, ToolService
home = home_at("files", sys.argv[2])

def say(*words):
    print(*words, flush=True)

def opened(**options):
    return ToolService.open(sys.argv[3], home=home, installed=False, **options)
"""

HOST = """
async def main():
    async with opened(settings={"approval.expires_seconds": 600}) as service:
        first = await service.call("write_file", {"path": "made", "content": "by a call"})
        say(first.run_id, first.status)
        run = service.call("shell", {"command": "echo half > left; echo started; exec sleep 600"})
        async for event in run:
            if event.type == "stdout":
                say(run.id)

asyncio.run(main())
"""

APPROVING = """
import contextlib, time
with contextlib.closing(InboxFacade(home)) as inbox:
    while not (waiting := inbox.waiting()):
        time.sleep(0.02)
    reply = inbox.answer(inbox.find(waiting[0].id), approved=True, who=Principal("ann"))
    say(reply.waiting.run, reply.host_lives)
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "workspace").mkdir()
    return home_at("files", tmp_path / "home")


@pytest.fixture
def process(home, tmp_path):
    """Starts programs that have a service on the storage; none outlives the test."""
    with contextlib.ExitStack() as ending:

        def start(program):
            command = [sys.executable, "-c", BEGIN + program, HERE, home.path, tmp_path / "workspace"]
            one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ending.callback(one.communicate)
            ending.callback(one.kill)
            return one

        yield start


def words(process):
    return process.stdout.readline().split()


def test_a_call_an_approval_from_elsewhere_a_kill_a_recovery_and_an_undo(home, process, tmp_path):
    workspace = tmp_path / "workspace"
    host = process(HOST)
    assert words(process(APPROVING))[1] == "True"
    first, status = words(host)
    assert (status, (workspace / "made").read_text()) == ("done", "by a call")
    second, lives = words(process(APPROVING))
    assert (words(host), lives) == ([second], "True")
    host.kill()
    host.wait()
    assert recover_dead_hosts(home) == 0, "its lease has not ended yet"
    open_stores(home).advance(3600)
    assert recover_dead_hosts(home) == 1
    assert not (workspace / "left").exists()
    with contextlib.closing(open_history(home)) as history:
        assert (history.find(first).status, history.find(second).status) == ("done", "error")
        assert history.find(second).record["error"]["code"] == "interrupted"

    async def undo():
        async with ToolService.open(workspace, home=home, installed=False) as service:
            outcome = await service.undo(first)
            assert outcome.status == "done", outcome.error
            assert service.record.verify().intact
            return [entry["run"] for entry in service.record.entries() if entry["type"] == "end"]

    ends = asyncio.run(undo())
    assert os.listdir(workspace) == []
    assert sorted(ends[:2]) == sorted([first, second])
    with contextlib.closing(open_changes(home)) as changes:
        assert changes.ledger.get(first).state == "undone"
    assert list(open_stores(home).leases().live()) == []
    assert not os.path.exists(home.database), "nobody went past the port"


STOPPED = """
async def yes(request):
    return True

async def main():
    async with opened(approver=yes) as service:
        run = service.call("shell", {"command": "echo late > late; echo started; exec sleep 600"})
        async for event in run:
            if event.type == "stdout":
                say(run.id)
                break
        sys.stdin.readline()
        lost = await run
        say(lost.status, lost.error.code)
        again = await service.call("write_file", {"path": "again", "content": "x"})
        say(again.status, again.error.code, "has lost its lease" in again.error.message)
    say("closed")

asyncio.run(main())
"""


def test_a_host_that_was_stopped_for_longer_than_its_lease_changes_nothing_any_more(home, process, tmp_path):
    host = process(STOPPED)
    (run,) = words(host)
    host.send_signal(signal.SIGSTOP)
    os.waitpid(host.pid, os.WUNTRACED)
    open_stores(home).advance(3600)
    assert recover_dead_hosts(home) == 1
    host.send_signal(signal.SIGCONT)
    host.stdin.write("go on\n")
    host.stdin.flush()
    assert words(host)[0] == "error"
    assert words(host) == ["error", "storage-failed", "True"]
    assert words(host) == ["closed"]
    assert os.listdir(tmp_path / "workspace") == []
    with contextlib.closing(open_history(home)) as history:
        assert history.find(run).record["error"]["code"] == "interrupted"
    assert recover_dead_hosts(home) == 0
    assert os.listdir(home.hosts) == []
