"""Nothing of a command outlives its call: whatever it forked, ignored, filled, stopped or killed."""

import asyncio
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from sampling import SELDOM

pytestmark = pytest.mark.every_user(share=SELDOM)

DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(sys.argv[1], "w").close()
time.sleep(600)
"""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def until(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.01)


# The command ends by itself.


def test_the_call_returns_when_the_command_ends_although_a_background_child_holds_its_pipe(bash, mark, left_of):
    sink = bash("echo before; sleep 601 & until grep -q sleep /proc/$!/comm; do :; done; echo after")
    assert sink.stdout == b"before\nafter\n"
    assert len(sink.children) == 1
    assert "sleep 601" in sink.children[0].command
    assert left_of(mark) == []


def test_a_child_that_left_its_session_twice_over_is_ended_and_named(bench, workspace, mark, left_of):
    async def go():
        with bench() as b:
            line = f"{sys.executable} -c '{DAEMON}' started & until [ -e started ]; do sleep 0.01; done; wait"
            return await b.bash(line)

    sink = asyncio.run(go())
    assert len(sink.children) == 1
    assert "time.sleep(600)" in sink.children[0].command
    assert left_of(mark) == []


def test_background_children_that_ignore_term_are_ended_too(bash, mark, left_of):
    bash("for n in 1 2 3; do (trap '' TERM; while :; do sleep 0.1; done) & done; sleep 0.1")
    assert left_of(mark) == []


def test_a_command_that_leaves_nothing_behind_names_no_children(bash):
    assert bash("sleep 0.01 & wait; (sleep 0.01); echo $(echo x)").children == []


def test_what_a_background_child_writes_before_the_end_is_not_lost(bash):
    sink = bash("(for n in $(seq 2000); do echo line $n; done) & wait")
    assert sink.stdout.count(b"\n") == 2000


# The command is cancelled.

STUBBORN = {
    "ignores TERM": "trap '' TERM INT HUP; echo ready; while :; do sleep 0.1; done",
    "sleeps": "echo ready; exec sleep 600",
    "fills its pipe": "trap '' TERM; echo ready; while :; do head -c 1000000 /dev/zero; done",
    "stops itself": "echo ready; kill -STOP $$; sleep 600",
    "stops itself and ignores TERM": "trap '' TERM; echo ready; kill -STOP $$; sleep 600",
    "closed its streams": "echo ready; exec >&- 2>&- <&-; sleep 600",
    "has many children": "for n in $(seq 20); do (trap '' TERM; sleep 600) & done; echo ready; wait",
    "answers TERM by forking": "trap 'sleep 600 & sleep 600 &' TERM; echo ready; while :; do sleep 0.05; done",
    "forks without end": "trap '' TERM; echo ready; f() { sleep 0.02; f & }; f & while :; do sleep 0.1; done",
}


@pytest.mark.parametrize("name", STUBBORN)
def test_a_cancelled_command_is_gone_when_the_call_returns(name, bench, mark, left_of):
    async def go():
        with bench() as b:
            await b.bash("true")
            before = descriptors()
            ready = asyncio.Event()

            class Watching:
                def output(self, stream, data):
                    ready.set()

                def processes_ended(self, children):
                    pass

            running = asyncio.create_task(b.bash(STUBBORN[name], sink=Watching()))
            await asyncio.wait_for(ready.wait(), 20)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                async with asyncio.timeout(60):
                    await running
            assert left_of(mark) == []
            assert descriptors() == before

    asyncio.run(go())


def test_a_command_that_is_asked_politely_may_clean_up(bench, workspace):
    async def go():
        with bench() as b:
            running = asyncio.create_task(
                b.bash("trap 'echo bye > farewell; exit' TERM; touch ready; while :; do sleep 0.05; done")
            )
            await until((workspace / "ready").exists)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(go())
    assert (workspace / "farewell").read_text() == "bye\n"


def test_cancelling_at_fifty_random_moments_leaves_no_process_and_no_descriptor(bench, mark, left_of, eventually):
    chance = random.Random(2)

    async def ten(b):
        for _ in range(10):
            size = chance.choice([0, 0, 300_000])
            running = asyncio.create_task(b.bash("sleep 600 & sleep 600", stdin=b"x" * size))
            await asyncio.sleep(chance.choice([0, 0.0005, 0.002, 0.01, 0.03]) * chance.random())
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    async def go():
        with bench() as b:
            await b.bash("true")
            before = descriptors()
            await asyncio.gather(*(ten(b) for _ in range(5)))
            assert descriptors() == before

    asyncio.run(go())
    eventually(lambda: not left_of(mark))


def test_cancelling_again_and_again_ends_it_once(bench, mark, left_of):
    async def go():
        with bench() as b:
            ready = asyncio.Event()

            class Watching:
                def output(self, stream, data):
                    ready.set()

                def processes_ended(self, children):
                    pass

            running = asyncio.create_task(b.bash("trap '' TERM; echo ready; sleep 600; sleep 600", sink=Watching()))
            await asyncio.wait_for(ready.wait(), 20)
            while not running.done():
                running.cancel()
                await asyncio.sleep(0.01)
            assert running.cancelled()
            assert left_of(mark) == []

    asyncio.run(go())


# Someone kills what watches over it.

TREASON = {
    "kills its supervisor": "kill -9 $PPID",
    "kills its supervisor and goes on forking": "sleep 600 & kill -9 $PPID; while :; do sleep 600 & sleep 0.01; done",
    "kills its supervisor from a daemon": "setsid bash -c 'kill -9 '$PPID'; sleep 600; :' & sleep 600; :",
    "stops its supervisor": "sleep 600 & kill -STOP $PPID; sleep 600",
    "asks its supervisor to end": "sleep 600 & kill -TERM $PPID; sleep 600",
}


@pytest.mark.parametrize("name", TREASON)
def test_a_command_that_turns_on_its_supervisor_leaves_nothing_behind(name, bench, mark, left_of):
    async def go():
        with bench() as b:
            sink = await asyncio.wait_for(b.bash(TREASON[name]), 20)
            assert sink.exit.code == 137
            await until(lambda: not left_of(mark))
            assert (await b.bash("echo still works")).stdout == b"still works\n"

    asyncio.run(go())


def is_gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_a_helper_that_was_killed_between_calls_is_started_again(bench):
    async def go():
        with bench() as b:
            await b.bash("true")
            first = b.helper
            os.kill(first, signal.SIGKILL)
            await until(lambda: is_gone(first))
            assert (await b.bash("echo works")).stdout == b"works\n"
            assert b.helper != first

    asyncio.run(go())


def test_a_helper_that_was_killed_during_a_call_does_not_take_the_call_with_it(bench, workspace, mark, left_of):
    async def go():
        with bench() as b:
            running = asyncio.create_task(
                b.bash("touch ready; sleep 600 & until [ -e go ]; do sleep 0.01; done; echo end")
            )
            await until((workspace / "ready").exists)
            first = b.helper
            os.kill(first, signal.SIGKILL)
            await until(lambda: is_gone(first))
            assert (await b.bash("echo works")).stdout == b"works\n"
            (workspace / "go").touch()
            assert (await running).stdout == b"end\n"
            assert left_of(mark) == []

    asyncio.run(go())


# The host goes.

HOST = """
import asyncio, os, sys
from haft.contracts import Command, Limits
from haft.sandbox import Sandbox

class Sink:
    def output(self, stream, data):
        if data.startswith(b"ready"):
            os.write(1, b"ready\\n")
    def processes_ended(self, children):
        pass

async def main():
    sandbox = Sandbox(sys.argv[1], sys.argv[1] + ".state", os.environ,
                      lambda path: os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY), Limits(), sys.argv[3])
    launcher = sandbox.launcher("workspace")
    lines = sys.argv[4:]
    await asyncio.gather(*(launcher.run(Command(["bash", "-c", line], env={"MARK": sys.argv[2]}), Sink())
                           for line in lines))
"""


MODES = ("auto", "off")


def host(tmp_path, workspace, mark, *lines: str, mode: str, ending: str = "asyncio.run(main())"):
    """A host in a process of its own, once every line has said `ready`."""
    program = tmp_path / "host.py"
    program.write_text(HOST + textwrap.dedent(ending))
    process = subprocess.Popen([sys.executable, program, workspace, mark, mode, *lines], stdout=subprocess.PIPE)
    said = [process.stdout.readline() for _ in lines]
    if said != [b"ready\n"] * len(lines):
        process.kill()
        process.communicate()
        pytest.fail(f"the host did not get ready: {said}")
    return process


@pytest.mark.parametrize("mode", MODES)
def test_a_host_killed_during_calls_leaves_nothing_of_its_tools(mode, tmp_path, workspace, mark, left_of, eventually):
    daemon = f"{sys.executable} -c '{DAEMON}' started; until [ -e started ]; do sleep 0.01; done; echo ready; sleep 600"
    lines = [STUBBORN["ignores TERM"], STUBBORN["fills its pipe"], daemon]
    process = host(tmp_path, workspace, mark, *lines, mode=mode)
    process.kill()
    process.stdout.close()
    process.wait()
    eventually(lambda: not left_of(mark))


FORKING = """
async def both():
    running = asyncio.create_task(main())
    await asyncio.sleep(0.5)
    pid = FORK
    os.write(1, b"ready\\n")
    await running
asyncio.run(both())
"""
FORKS = {
    "os.fork": "os.fork() or (os.close(1), __import__('time').sleep(600))",
    "multiprocessing": "__import__('multiprocessing').get_context('fork').Process("
    "target=__import__('time').sleep, args=(600,)).start()",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", FORKS)
def test_a_forked_copy_of_the_host_does_not_keep_its_tools_alive(
    way, mode, tmp_path, workspace, mark, left_of, eventually
):
    ending = FORKING.replace("FORK", FORKS[way])
    process = host(tmp_path, workspace, mark, "echo ready; exec sleep 601", mode=mode, ending=ending)
    copies = []
    try:
        assert process.stdout.readline() == b"ready\n"
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        with open(children) as file:
            copies = [int(pid) for pid in file.read().split()]
        process.kill()
        process.wait()
        tools = lambda: [line for line in left_of(mark) if "sleep 601" in line and "host.py" not in line]  # noqa: E731
        eventually(lambda: not tools())
        assert [line for line in left_of(mark) if "host.py" in line], "the copy should still be there"
    finally:
        process.stdout.close()
        for pid in copies:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    ours = b"host.py" in file.read()
            except OSError:
                continue
            if ours:
                os.kill(pid, signal.SIGKILL)


def test_the_host_is_no_subreaper_and_its_own_children_stay_its_own(bench):
    async def go():
        with bench() as b:
            mine = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
            forked = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0,))
            forked.start()
            pid = os.spawnvp(os.P_NOWAIT, "true", ["true"])
            await asyncio.gather(*(b.bash("sleep 0.2 & setsid sleep 0.2 & true") for _ in range(5)))
            assert mine.wait() == 7
            forked.join()
            assert forked.exitcode == 0
            assert os.waitpid(pid, 0) == (pid, 0)
            # Only the helper is left as a child of ours.
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                assert b.helper in [int(pid) for pid in file.read().split()]

    import ctypes

    asyncio.run(go())
    flag = ctypes.c_int(-1)
    assert ctypes.CDLL(None).prctl(37, ctypes.byref(flag), 0, 0, 0) == 0  # PR_GET_CHILD_SUBREAPER
    assert flag.value == 0


def test_closing_the_starter_ends_the_helper(bench):
    async def go():
        with bench() as b:
            await b.bash("true")
            return b.helper

    assert is_gone(asyncio.run(go()))
