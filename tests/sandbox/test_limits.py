"""Limits of a call: each one ends the call and is named, no process is left, and other calls do not notice.

Through the whole service, as whoever runs the tests; `test_ordinary_user` runs it once more as an ordinary user.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from haft import tool
from haft.service import ToolService

sys.path.insert(0, str(Path(__file__).parent))
import hungry_tools

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="limits on processes need Linux"),
]

PYTHON = sys.executable
MB = 1_000_000
ENDS = 60
"""Seconds within which any other call answers meanwhile, however busy the machine is."""

BOMB = ":(){ :|:& };:; sleep 60"
ALLOCATE = "import sys, time\nb = bytearray(int(sys.argv[1]))\nb[::4096] = b'x' * len(b[::4096])\ntime.sleep(60)\n"


async def yes(_request) -> bool:
    return True


@pytest.fixture
def service(tmp_path):
    """Opens services on one workspace, with settings by their short names."""
    (tmp_path / "workspace").mkdir()

    @contextlib.asynccontextmanager
    async def opened(tools=(), mode="auto", **limits):
        settings = {"sandbox.mode": mode, **{f"limits.{name}": value for name, value in limits.items()}}
        async with ToolService.open(
            tmp_path / "workspace",
            approver=yes,
            home=tmp_path / "home",
            installed=False,
            tools=tools,
            settings=settings,
        ) as service:
            yield service

    return opened


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 100))


def python(code, *words):
    """A shell command that runs Python code without any quoting."""
    quoted = code.replace("'", "'\\''")
    return f"exec {PYTHON} -S -c '{quoted}' {' '.join(map(str, words))}"


def check_hit(outcome, limit, value, code="limit-exceeded"):
    """The call was ended by this limit, and says so."""
    assert (outcome.status, outcome.error and outcome.error.code) == ("error", code), (
        outcome.error,
        outcome.output[-500:],
    )
    assert outcome.limits.hit == limit
    assert outcome.limits.applied[limit] == value
    if code == "limit-exceeded":
        assert f"{value:_}" in outcome.error.message
        assert f"limits.{limit}" in outcome.error.hint
        assert outcome.limits.enforced[limit].split()[0] in ("cgroup-v1", "cgroup-v2", "watching", "rlimit")


HOSTILE = {
    "a fork bomb": (BOMB, {}, "max_processes", 256),
    "too many children, idle": (
        "for n in $(seq 400); do sleep 60 & done; wait",
        {},
        "max_processes",
        256,
    ),
    "too many children, each in a session of its own": (
        python(
            "import os, time\n"
            "for n in range(400):\n"
            "    if os.fork() == 0:\n"
            "        os.setsid()\n"
            "        time.sleep(60)\n"
            "time.sleep(60)"
        ),
        {},
        "max_processes",
        256,
    ),
    "3 GB of memory": (python(ALLOCATE, 3_000_000_000), {}, "memory_bytes", 2_000_000_000),
    "memory of many small processes": (
        python(
            "import os, time\n"
            "for n in range(60):\n"
            "    if os.fork() == 0:\n"
            "        b = bytes([1]) * 8_000_000\n"
            "        time.sleep(60)\n"
            "time.sleep(60)"
        ),
        {"memory_bytes": 300 * MB},
        "memory_bytes",
        300 * MB,
    ),
    "a full /tmp": (
        "for n in $(seq 20); do head -c 20M /dev/zero > /tmp/$n; done; sleep 60",
        {"memory_bytes": 200 * MB},
        "memory_bytes",
        200 * MB,
    ),
    "one file too large for /tmp": (
        "head -c 300M /dev/zero > /tmp/x",
        {"memory_bytes": 200 * MB},
        "memory_bytes",
        200 * MB,
    ),
    "a full /dev/shm and /var/tmp": (
        "for n in $(seq 10); do head -c 20M /dev/zero | tee /dev/shm/$n > /var/tmp/$n; done; sleep 60",
        {"memory_bytes": 200 * MB},
        "memory_bytes",
        200 * MB,
    ),
    "a file past its limit": (
        "dd if=/dev/zero of=big bs=1M count=30; exit",
        {"max_written_file_bytes": 20 * MB},
        "max_written_file_bytes",
        20 * MB,
    ),
    "a file past its limit, the signal ignored": (
        python(
            "import signal\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "with open('big', 'wb', buffering=0) as file:\n"
            "    for n in range(30): file.write(bytes(1_000_000))\n"
        ),
        {"max_written_file_bytes": 20 * MB},
        "max_written_file_bytes",
        20 * MB,
    ),
    "processor time": ("while :; do :; done", {"cpu_seconds": 0.5}, "cpu_seconds", 0.5),
    "processor time of many": (
        "while :; do for n in 1 2 3 4; do (for m in $(seq 3000); do :; done) & done; wait; done",
        {"cpu_seconds": 0.5},
        "cpu_seconds",
        0.5,
    ),
    "bytes written, in many files": (
        "for n in $(seq 40); do head -c 5M /dev/zero > f$n; sync f$n; done; sleep 60",
        {"max_written_bytes": 60 * MB},
        "max_written_bytes",
        60 * MB,
    ),
    "too many files": (
        python("for n in range(20_000): open(f'f{n}', 'w').close()\nimport time\ntime.sleep(60)"),
        {"max_changed_files": 2000},
        "max_changed_files",
        2000,
    ),
    "too many open files": (
        python("held = [open('/dev/null') for n in range(2000)]"),
        {"max_open_files": 500},
        "max_open_files",
        500,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_limit_ends_the_call_and_is_named_and_nobody_else_notices(what, service, mark, left_of, eventually):
    command, limits, limit, value = HOSTILE[what]

    async def scenario():
        async with service(**limits) as open_service:
            await open_service.call("write_file", {"path": "note", "content": "here"})
            await open_service.call("shell", {"command": "true"})
            hostile = open_service.call("shell", {"command": command, "env": {"MARK": mark}})
            done = 0

            async def others():
                nonlocal done
                while hostile.outcome is None or done < 10:
                    name, arguments = [
                        ("read_file", {"path": "note"}),
                        ("shell", {"command": "cat note"}),
                    ][done % 2]
                    outcome = await asyncio.wait_for(open_service.call(name, arguments), ENDS)
                    done += 1
                    assert outcome.status == "done", outcome.error
                    assert "here" in outcome.output
                    await asyncio.sleep(0.01)

            await others()
            outcome = await hostile
            eventually(lambda: not left_of(mark), what=f"the end of {what}")
            check_hit(outcome, limit, value)
            assert (await open_service.call("shell", {"command": "echo after"})).output == "after\n"

    run(scenario())


def test_a_fork_bomb_whose_beginner_ends_at_once_is_gone_with_it(service, mark, left_of, eventually):
    async def scenario():
        async with service() as open_service:
            outcome = await open_service.call("shell", {"command": ":(){ :|:& };:", "env": {"MARK": mark}})
            eventually(lambda: not left_of(mark))
            assert outcome.status == "done" or outcome.limits.hit == "max_processes"
            assert (await open_service.call("shell", {"command": "echo after"})).output == "after\n"

    run(scenario())


def test_children_left_behind_are_ended_and_named(service, mark, left_of, eventually):
    async def scenario():
        async with service(max_processes=1000) as open_service:
            command = "for n in $(seq 400); do setsid sleep 600 & done; disown -a"
            outcome = await open_service.call("shell", {"command": command, "env": {"MARK": mark}})
            assert outcome.status == "done", outcome.error
            eventually(lambda: not left_of(mark))
            assert len(outcome.ended_children) >= 390
            assert "sleep 600" in {child.command for child in outcome.ended_children}

    run(scenario())


def test_an_endless_loop_runs_into_its_deadline(service, mark, left_of, eventually):
    async def scenario():
        async with service(max_seconds=0.7) as open_service:
            outcome = await open_service.call("shell", {"command": "while :; do :; done", "env": {"MARK": mark}})
            check_hit(outcome, "max_seconds", 0.7, "timed-out")
            assert "0.7 s" in outcome.error.message
            assert "limits.max_seconds" in outcome.error.hint
            eventually(lambda: not left_of(mark))

    run(scenario())


SHARED = (
    "import os, time\n"
    "b = bytearray(300_000_000)\n"
    "b[::4096] = b'x' * len(b[::4096])\n"
    "children = []\n"
    "for n in range(10):\n"
    "    pid = os.fork()\n"
    "    if pid == 0:\n"
    "        time.sleep(0.7)\n"
    "        os._exit(0)\n"
    "    children.append(pid)\n"
    "for pid in children: os.waitpid(pid, 0)\n"
    "print('well')\n"
)


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_memory_that_processes_share_counts_once(service, mode):
    async def scenario():
        async with service(mode=mode, memory_bytes=1_000_000_000) as open_service:
            outcome = await open_service.call("shell", {"command": python(SHARED)})
            assert (outcome.status, outcome.output) == ("done", "well\n"), outcome.error

    run(scenario())


def test_memory_that_is_only_reserved_does_not_count(service):
    async def scenario():
        async with service(memory_bytes=300 * MB) as open_service:
            code = "import mmap\nheld = mmap.mmap(-1, 20_000_000_000)\nprint(len(held))"
            outcome = await open_service.call("shell", {"command": python(code)})
            assert (outcome.status, outcome.output) == ("done", "20000000000\n"), outcome

    run(scenario())


def test_files_that_were_read_or_written_are_no_memory_of_the_call(service):
    async def scenario():
        async with service(memory_bytes=100 * MB) as open_service:
            command = "head -c 300M /dev/zero > big && cat big | wc -c"
            outcome = await open_service.call("shell", {"command": command})
            assert (outcome.status, outcome.output) == ("done", f"{300 << 20}\n"), outcome

    run(scenario())


def test_threads_are_not_processes(service):
    async def scenario():
        async with service(max_processes=100) as open_service:
            code = (
                "import threading, time\n"
                "threading.stack_size(262_144)\n"  # Little, and twice what aarch64 asks for.
                "held = [threading.Thread(target=time.sleep, args=(0.5,)) for n in range(200)]\n"
                "for each in held: each.start()\n"
                "for each in held: each.join()\n"
                "print('well')"
            )
            outcome = await open_service.call("shell", {"command": python(code)})
            assert (outcome.status, outcome.output) == ("done", "well\n"), outcome.error

    run(scenario())


def test_a_limit_of_one_call_is_not_anothers(service, mark, left_of, eventually):
    """Two calls that each stay within the limit together pass it; one that passes it takes nobody with it."""

    async def scenario():
        async with service(memory_bytes=300 * MB, max_processes=60) as open_service:
            code = ALLOCATE.replace("60", "1.5") + "print('well')"
            good = [open_service.call("shell", {"command": python(code, 150 * MB)}) for _ in range(3)]
            many = [
                open_service.call("shell", {"command": "for n in $(seq 40); do sleep 1 & done; wait; echo well"})
                for _ in range(3)
            ]
            bad = open_service.call("shell", {"command": python(ALLOCATE, 600 * MB), "env": {"MARK": mark}})
            bomb = open_service.call("shell", {"command": BOMB, "env": {"MARK": mark}})
            check_hit(await bad, "memory_bytes", 300 * MB)
            check_hit(await bomb, "max_processes", 60)
            for each in (*good, *many):
                outcome = await each
                assert (outcome.status, outcome.output) == ("done", "well\n"), outcome.error
            eventually(lambda: not left_of(mark))

    run(scenario())


def test_what_was_used_by_one_call_is_free_for_the_next(service):
    async def scenario():
        async with service(memory_bytes=300 * MB, max_processes=40, max_concurrent=1) as open_service:
            for _ in range(2):
                check_hit(
                    await open_service.call("shell", {"command": python(ALLOCATE, 600 * MB)}), "memory_bytes", 300 * MB
                )
                code = ALLOCATE.replace("60", "0") + "print('well')"
                outcome = await open_service.call("shell", {"command": python(code, 200 * MB)})
                assert (outcome.status, outcome.output) == ("done", "well\n"), outcome.error
                check_hit(await open_service.call("shell", {"command": BOMB}), "max_processes", 40)
                outcome = await open_service.call("shell", {"command": "for n in $(seq 20); do sleep 0.1 & done; wait"})
                assert outcome.status == "done", outcome.error

    run(scenario())


def test_a_failure_that_no_limit_caused_is_blamed_on_none(service):
    async def scenario():
        async with service(memory_bytes=300 * MB) as open_service:
            outcome = await open_service.call("shell", {"command": "kill -KILL $$"})
            assert (outcome.error.code, outcome.limits.hit) == ("tool-failed", None)
            assert "signal 9" in outcome.error.message

    run(scenario())


def test_zero_means_none(service):
    names = (
        "memory_bytes", "max_processes", "cpu_seconds", "max_written_bytes", "max_written_file_bytes",
        "max_changed_files",
    )  # fmt: skip

    async def scenario():
        async with service(**dict.fromkeys(names, 0)) as open_service:
            command = (
                "for n in $(seq 300); do sleep 0.5 & done; wait; "
                f"{PYTHON} -S -c 'b = bytearray(300_000_000); b[::4096] = b\"x\" * len(b[::4096])'; "
                "head -c 20M /dev/zero > big; ulimit -f; echo well"
            )
            outcome = await open_service.call("shell", {"command": command})
            assert (outcome.status, outcome.output) == ("done", "unlimited\nwell\n"), outcome
            assert not set(names) & set(outcome.limits.applied)
            assert not set(names) & set(outcome.limits.enforced)

    run(scenario())


NO_SANDBOX = ("a fork bomb", "memory of many small processes", "a file past its limit", "processor time",
            "bytes written, in many files", "too many files", "3 GB of memory")  # fmt: skip


@pytest.mark.parametrize("what", NO_SANDBOX)
def test_limits_hold_where_the_sandbox_is_off(what, service, mark, left_of, eventually):
    command, limits, limit, value = HOSTILE[what]

    async def scenario():
        async with service(mode="off", **limits) as open_service:
            outcome = await open_service.call("shell", {"command": command, "env": {"MARK": mark}})
            check_hit(outcome, limit, value)
            assert outcome.limits.enforced[limit] in ("watching", "rlimit")
            assert outcome.sandbox.layers == ()
            eventually(lambda: not left_of(mark))
            assert (await open_service.call("shell", {"command": "echo after"})).output == "after\n"

    run(scenario())


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_isolated_tools_are_held_to_the_same_limits(service, mode, mark, left_of, eventually):
    made = tool(isolated=True)(hungry_tools.take_memory)

    async def scenario():
        async with service(tools=[made], mode=mode, memory_bytes=300 * MB) as open_service:
            outcome = await open_service.call("take_memory", {"amount": 800 * MB}, env={"MARK": mark})
            check_hit(outcome, "memory_bytes", 300 * MB)
            eventually(lambda: not left_of(mark))
            assert (await open_service.call("take_memory", {"amount": MB})).result == MB

    run(scenario())


def test_in_process_tools_have_no_limits_on_processes(service):
    async def scenario():
        async with service(tools=[tool(hungry_tools.take_memory)]) as open_service:
            outcome = await open_service.call("take_memory", {"amount": MB})
            assert outcome.result == MB
            assert set(outcome.limits.applied) == {"max_seconds", "max_output_bytes"}
            assert outcome.limits.enforced == {}

    run(scenario())
