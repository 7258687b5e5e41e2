"""How much a call uses, counted from what the kernel says."""

import os
import resource
import subprocess
import sys
import time

import pytest

from haft.helper import meter
from haft.helper.meter import Meter, changed_since, rlimits

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

NO_LIMITS = {
    "memory_bytes": 0, "max_processes": 0, "cpu_seconds": 0, "max_written_bytes": 0, "max_written_file_bytes": 0,
    "max_changed_files": 0, "max_open_files": 1000,
}  # fmt: skip


@pytest.fixture
def child():
    """A process that says when it is ready, and waits."""
    started = []

    def child(code):
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", f"{code}\nprint('ready', flush=True)\nimport time\ntime.sleep(600)"],
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process.pid

    yield child
    for process in started:
        process.kill()
        process.communicate()


def test_what_changed_since_a_moment_is_counted(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old/file").write_text("x")
    time.sleep(0.1)
    since = time.time()
    assert changed_since(str(tmp_path), since, 1000) == (0, 0)
    time.sleep(0.05)
    (tmp_path / "old/new").mkdir()  # changes `old` too
    (tmp_path / "old/new/a").write_bytes(bytes(100_000))
    (tmp_path / "link").symlink_to("/")
    found, size = changed_since(str(tmp_path), since, 1000)
    assert found == 4
    assert 100_000 <= size < 200_000


def test_a_change_of_an_old_file_counts(tmp_path):
    (tmp_path / "old").write_text("x")
    time.sleep(0.1)
    since = time.time()
    time.sleep(0.05)
    (tmp_path / "old").chmod(0o600)
    assert changed_since(str(tmp_path), since, 1000)[0] == 1


def test_only_so_many_entries_are_looked_at(tmp_path):
    for n in range(5):
        (tmp_path / f"d{n}").mkdir()
        for m in range(10):
            (tmp_path / f"d{n}" / f"f{m}").touch()
    assert 5 <= changed_since(str(tmp_path), 0.0, 6)[0] < 55
    assert changed_since(str(tmp_path), 0.0, 1000)[0] == 55


def test_a_directory_that_is_gone_holds_nothing(tmp_path):
    assert changed_since(str(tmp_path / "gone"), 0.0, 1000) == (0, 0)


def test_nothing_is_found_where_nothing_is_limited(child):
    pid = child("")
    assert Meter(NO_LIMITS, lambda: [pid]).look() is None


@pytest.mark.parametrize(("limit", "hit"), [(3, None), (2, ("max_processes", 3))])
def test_processes_are_counted(limit, hit):
    found = Meter({**NO_LIMITS, "max_processes": limit}, lambda: [os.getpid()] * 3)
    assert found.look() == hit


def test_memory_is_counted_once_where_it_is_shared(child):
    code = (
        "import os, time\n"
        "held = bytearray(60_000_000)\n"
        "held[::4096] = b'x' * len(held[::4096])\n"
        "children = [pid for n in range(3) if (pid := os.fork()) or time.sleep(600)]\n"
    )
    pid = child(code)
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        pids = [pid, *map(int, file.read().split())]
    assert len(pids) == 4
    try:
        assert Meter({**NO_LIMITS, "memory_bytes": 120_000_000}, lambda: pids).look() is None
        name, used = Meter({**NO_LIMITS, "memory_bytes": 40_000_000}, lambda: pids).look()
        assert name == "memory_bytes"
        assert 40_000_000 < used < 120_000_000
    finally:
        for each in pids[1:]:
            os.kill(each, 9)


def test_files_in_the_scratch_place_are_memory(child):
    pid = child("")
    within = os.statvfs("/dev/shm")
    used = (within.f_blocks - within.f_bfree) * within.f_frsize
    found = Meter({**NO_LIMITS, "memory_bytes": used + 1_000_000_000}, lambda: [pid], scratch="/dev/shm")
    assert found.look() is None
    assert found.scratch_is_full() == 0
    assert Meter(NO_LIMITS, lambda: [pid]).scratch_is_full() == 0


def test_processor_time_is_counted(child):
    pid = child("import time\nwhile time.process_time() < 0.4: pass")
    name, used = Meter({**NO_LIMITS, "cpu_seconds": 0.2}, lambda: [pid]).look()
    assert name == "cpu_seconds"
    assert used >= 0.3


def test_a_process_that_is_gone_counts_nothing():
    gone = subprocess.Popen(["true"])
    gone.wait()
    limits = {**NO_LIMITS, "memory_bytes": 1_000_000, "max_written_bytes": 1000}
    assert Meter(limits, lambda: [gone.pid]).look() is None


def test_a_name_with_parentheses_misleads_nobody(child):
    code = "import ctypes, time\nctypes.CDLL(None).prctl(15, b') R 1 1 (', 0, 0, 0)\n"
    pid = child(code + "while time.process_time() < 0.4: pass")
    with open(f"/proc/{pid}/stat") as file:
        assert ") R 1 1 (" in file.read()
    assert Meter({**NO_LIMITS, "cpu_seconds": 0.2}, lambda: [pid]).look()[0] == "cpu_seconds"
    assert Meter({**NO_LIMITS, "memory_bytes": 1_000_000}, lambda: [pid]).look()[0] == "memory_bytes"


def test_files_that_others_make_are_not_the_calls(tmp_path, monkeypatch):
    inside, outside = tmp_path / "workspace", tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    counts = iter([(1000, 0), (1100, 0), (1100, 0)])
    monkeypatch.setattr(Meter, "_on_disk", lambda self: next(counts))
    found = Meter({**NO_LIMITS, "max_changed_files": 10}, list, roots=[str(inside)])
    assert found.look() is None  # a hundred more on the disk, none of them here
    for n in range(20):
        (inside / str(n)).touch()
    assert found.look() == ("max_changed_files", 20)


def test_looks_are_far_apart_when_they_cost_much(monkeypatch):
    def work():
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
        return []

    found = Meter(NO_LIMITS, work)
    assert found.pause() == meter.SHORTEST_SECONDS
    found.look()
    assert 0.2 <= found.pause() <= meter.LONGEST_SECONDS


def test_rlimits_are_those_that_were_asked_for():
    limits = {**NO_LIMITS, "max_processes": 10, "max_written_file_bytes": 5000, "max_open_files": 77}
    root = rlimits(limits, user=False, calls=3)
    assert root == {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 77, resource.RLIMIT_FSIZE: 5000}
    assert rlimits(limits, user=True, calls=3) == {**root, resource.RLIMIT_NPROC: 130}
    assert set(rlimits(NO_LIMITS, user=True, calls=3)) == {resource.RLIMIT_CORE, resource.RLIMIT_NOFILE}


def test_rlimits_are_never_raised():
    code = (
        "import resource\n"
        "from haft.helper.meter import apply_rlimits\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))\n"
        "apply_rlimits({resource.RLIMIT_NOFILE: 10_000, resource.RLIMIT_CORE: 0})\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE))\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout == "(200, 200) (0, 0)\n"
