"""Libraries and templates that try to gain something from being kept loaded: what they do at import, to the process
that they were forked from, and to the calls before and after."""

import asyncio
import os
import platform
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loaded import Loaded, OwnEnvironment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is kept loaded elsewhere")


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A service to be, whose templates see the libraries that a test writes."""
    environment = OwnEnvironment(tmp_path / "environment")
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    return Loaded(tmp_path, environment)


HIDES = """
import os, stat
real = os.fstat
def lies(number):
    found = real(number)
    return os.stat("/dev/null") if stat.S_ISSOCK(found.st_mode) or stat.S_ISFIFO(found.st_mode) else found
os.fstat = lies
"""
"""Keeps the check for open descriptors from seeing any."""

UNFIT = {
    "a thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        "threads",
    ),
    "words": ("print('hello')", "print"),
    "words on stderr": ("import os\nos.write(2, b'hello')", "print"),
    "a socket": ("import socket\nkept = socket.socketpair()", "files or sockets"),
    "a file": ("kept = open(__file__)", "files or sockets"),
    "a child": ("import subprocess\nkept = subprocess.Popen(['sleep', '1000'])", "processes"),
    "a child of nobody": (
        "import os\nif os.fork() == 0:\n    os.fork() and os._exit(0)\n    os.setsid()\n    os.execvp('sleep', ['sleep', '1000'])\nos.wait()",  # noqa: E501
        "processes",
    ),
    "a handler": ("import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)", "signals"),
    "a crash": ("import os\nos.abort()", "ended"),
    "an end": ("import os\nos._exit(0)", "ended"),
    "a kill": ("import os, signal\nos.kill(os.getpid(), 9)", "ended"),
    "shared memory": ("import mmap\nkept = mmap.mmap(-1, 4096)", "memory"),
    "a segment": ("import ctypes\nctypes.CDLL(None).shmget(4711, 4096, 0o1600)", "memory"),
    "a hidden socket": (HIDES + "import socket\nkept = socket.socketpair()", "files or sockets"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_library_that_a_fork_would_not_have_as_it_is_is_not_kept_loaded(loaded, what):
    source, why = UNFIT[what]
    if what in ("a crash", "an end", "a kill"):
        source = "import sys\nif sys.argv[2:] == ['serve']:\n" + "".join(
            f"    {line}\n" for line in source.splitlines()
        )
    loaded.environment.library("odd_library", source)
    loaded.write("odd", top="import odd_library", run="return [args.x, __name__]")

    async def go():
        async with loaded:
            for number in range(2):
                outcome = await loaded.call("odd", str(number))
                assert outcome.output.endswith(f"['{number}', '__main__']"), outcome
                found = await loaded.settled("odd")
            assert why in found
            assert loaded.warm_pool.taken == [False, False]

    asyncio.run(go())


def test_a_library_that_hangs_when_it_is_loaded_is_given_up_and_calls_go_on(loaded, monkeypatch):
    monkeypatch.setattr("haft.sandbox.warm_pool.LOADING_SECONDS", 0.5)
    loaded.environment.library("slow", "import sys, time\nif sys.argv[2:] == ['serve']: time.sleep(1000)")
    loaded.write("odd", top="import slow", run="return args.x")

    async def go():
        async with loaded:
            assert (await loaded.call("odd", "one")).output == "one"
            assert "was not loaded within" in await loaded.settled("odd")
            assert (await loaded.call("odd", "two")).output == "two"

    asyncio.run(go())


NEXT_IS_RIGHT = {
    "kills what it was forked from": """
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (1, os.getpid()):
                try: os.kill(int(name), 9)
                except OSError: pass
        """,
    "wakes what it was forked from": """
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (1, os.getpid()):
                try: os.kill(int(name), 18)
                except OSError: pass
        """,
    "signals everyone": "os.kill(-1, 15) if len(os.listdir('/proc')) else None",
    "fills the scratch place": """
        try:
            with open("/dev/shm/large", "wb") as file:
                for _ in range(64):
                    file.write(bytes(1 << 20))
        except OSError:
            pass
        """,
    "makes more scratch files than are looked at": "for n in range(2500): open(f'/dev/shm/{n}', 'w').close()",
    "makes a deep scratch place": "os.makedirs('/dev/shm/' + 'd/' * 60)",
    "makes a scratch place that is closed": "os.makedirs('/dev/shm/closed/in')\nos.chmod('/dev/shm/closed', 0)",
    "leaves something in the /tmp of its thread": "open('/tmp/left', 'w').close()",
    "puts a link to the workspace in its scratch place": "os.symlink(os.getcwd(), '/dev/shm/link')",
    "leaves a daemon": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "1000"])
            os._exit(0)
        os.wait()
        """,
    "changes its limits": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))",
    "stops itself": "import threading\nthreading.Timer(0.05, lambda: os.kill(os.getpid(), 18)).start()",
}


@pytest.mark.parametrize("what", NEXT_IS_RIGHT)
def test_whatever_a_call_does_the_next_one_is_as_if_it_had_not_been(loaded, what):
    """Twice: the second one may be answered from what the first one left."""
    loaded.write(
        "odd",
        top="BEFORE = [sorted(os.listdir('/tmp')), sorted(os.listdir('/dev/shm'))]",
        run=f"""
        if args.x != "bad":
            return [args.x, BEFORE]
        {NEXT_IS_RIGHT[what].strip()}
        """.replace("\n        ", "\n"),
    )

    async def go():
        async with loaded:
            clean = (await loaded.warmed("odd", "clean")).output
            await loaded.warm_call("odd", "bad", thread="T-bad")
            assert (await loaded.call("odd", "clean")).output == clean
            assert await loaded.settled("odd") is None
            assert (await loaded.warm_call("odd", "clean")).output == clean

    asyncio.run(go())


IO_PRIORITY = {"x86_64": (251, 252), "aarch64": (30, 31), "riscv64": (30, 31)}
"""The numbers of ioprio_set and ioprio_get."""

SCHEDULING = """
def scheduling():
    disk = ctypes.CDLL(None).syscall(IO[1], 1, 0) if IO else None
    return [os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0), disk]

denied = contextlib.suppress(PermissionError)  # By init; everyone else is changed.

def keeper():
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return next(pid for pid in pids if pid not in (1, os.getpid()))
"""

RESCHEDULED = {
    "niceness": "os.setpriority(os.PRIO_PROCESS, keeper(), 7)",
    "niceness of its process group": "os.setpriority(os.PRIO_PGRP, os.getpgid(keeper()), 7)",
    "niceness of all of the user": "with denied: os.setpriority(os.PRIO_USER, os.getuid(), 7)",
    "processors": "os.sched_setaffinity(keeper(), [min(os.sched_getaffinity(0))])",
    "scheduler": "os.sched_setscheduler(keeper(), os.SCHED_BATCH, os.sched_param(0))",
    "priority at the disk": "ctypes.CDLL(None).syscall(IO[0], 1, keeper(), (3 << 13) | 7) if IO else None",
}


@pytest.mark.every_user
@pytest.mark.parametrize("what", RESCHEDULED)
def test_a_call_that_reschedules_what_it_was_forked_from_changes_nothing_for_the_next(loaded, what):
    if what == "processors" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    loaded.write(
        "odd",
        top=f"import contextlib, ctypes\nIO = {IO_PRIORITY.get(platform.machine())}\n{SCHEDULING}",
        run=f"""
        if args.x == "bad":
            {RESCHEDULED[what]}
        return scheduling()
        """,
    )

    async def go():
        async with loaded:
            clean = (await loaded.warmed("odd", "clean")).output
            outcome = await loaded.warm_call("odd", "bad")
            assert outcome.status == "done", (outcome.error, outcome.output)
            assert loaded.warm_pool.count == 0
            assert (await loaded.call("odd", "clean")).output == clean
            assert await loaded.settled("odd") is None
            assert (await loaded.warm_call("odd", "clean")).output == clean
            assert (await loaded.warm_call("odd", "clean")).output == clean

    asyncio.run(go())


def test_a_library_that_opens_sockets_behind_the_back_of_the_check_is_not_kept_loaded(loaded):
    """By them a call could leave words to the next one, or a descriptor of its layer."""
    loaded.environment.library(
        "holder",
        """
        import os, socket, sys
        ends = []
        def hold():
            if not ends:
                ends.extend(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        if sys.argv[2:] == ["serve"]:
            os.register_at_fork(before=hold)
        """,
    )
    loaded.write("odd", top="import holder", run="return len(holder.ends)")

    async def go():
        async with loaded:
            assert (await loaded.call("odd")).output == "0"
            assert "sockets" in await loaded.settled("odd")
            assert (await loaded.call("odd")).output == "0"

    asyncio.run(go())


def test_a_library_that_forks_once_more_while_nobody_looks_does_not_serve(loaded):
    loaded.environment.library(
        "forker",
        """
        import os, sys, threading, time
        def again():
            time.sleep(0.0005)
            if os.fork() == 0:
                time.sleep(1000)
        real, count = os.fork, []
        def fork():
            pid = real()
            count.append(1)
            if pid == 0 and len(count) == 2:
                def more():
                    for _ in range(50):
                        time.sleep(0.0002)
                        if real() == 0:
                            time.sleep(1000)
                            os._exit(0)
                threading.Thread(target=more, daemon=True).start()
            return pid
        if sys.argv[2:] == ["serve"]:
            os.fork = fork
        """,
    )
    loaded.write("odd", top="import forker", run="return len([n for n in os.listdir('/proc') if n.isdigit()])")

    async def go():
        async with loaded:
            assert (await loaded.call("odd")).output == "2"
            assert await loaded.settled("odd", seconds=30) is not None

    asyncio.run(go())


def test_secrets_are_on_no_command_line_and_in_no_environment(tmp_path, monkeypatch):
    environment = OwnEnvironment(tmp_path / "environment")
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    instances = [
        {
            "name": name,
            "template": str(tmp_path / "templates" / "secret"),
            "user_params": {"key": f"s3cret-{name}"},
        }
        for name in ("one", "two")
    ]
    loaded = Loaded(tmp_path, environment, **{"templates.instances": instances})
    loaded.write(
        "secret",
        user="key: str",
        run="""
        import glob
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
            try:
                if b"s3cret" in open(path, "rb").read():
                    found.append(path)
            except OSError:
                pass
        return [config.key[::-1], found]
        """,
    )

    async def go():
        async with loaded:
            await loaded.call("one")
            await loaded.settled("secret")
            for name in ("one", "two", "one", "two"):
                outcome = await loaded.warm_call(name)
                assert outcome.output == str([f"s3cret-{name}"[::-1], []])
                assert "s3cret" not in repr(loaded.warm_pool._loaded[0].key)

    asyncio.run(go())
