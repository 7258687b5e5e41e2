"""What is left of a test run that ends early: no process of a tool, and no directory."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from haft.testing.calls.world import World, remove_abandoned
from haft.testing.scenarios.scenario import Scenario

pytestmark = pytest.mark.takes_turns

FAULTS = [None, {"kind": "full-disk", "bytes": 1_000_000}, {"kind": "host-killed", "after_seconds": 500}]


def processes_of(marker):
    """The processes that have a text in their command line."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{each}/cmdline", "rb") as file:
                if marker.encode() in file.read() and int(each) != os.getpid():
                    found.append(int(each))
        except OSError:
            continue
    return found


def eventually(condition):
    for _ in range(1500):
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def started(tmp_path):
    """Starts `haft tools test` with a tool that ignores signals, and waits until the tool runs."""
    running, made = [], []

    def start(fault=None, *, is_short=True):
        marker = f"haft-left-{os.getpid()}-{time.monotonic_ns()}"
        command = f"trap '' TERM HUP INT; setsid sh -c 'sleep 600; : {marker}' & sleep 600"
        scenario = {"tool": "shell", "args": {"command": command}} | ({"fault": fault} if fault else {})
        (tmp_path / "a.scenario.json").write_text(json.dumps(scenario))
        temporary = tempfile.mkdtemp(prefix="short-" if is_short else "long-" + "x" * 100)
        made.append(temporary)
        process = subprocess.Popen(
            [sys.executable, "-m", "haft", "tools", "test", "a.scenario.json"],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": temporary, "HAFT_HOME": str(tmp_path / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running.append(process)
        assert eventually(lambda: processes_of(marker) or process.poll() is not None)
        if process.poll() is not None:
            said = process.communicate()[0].decode()
            if "skipped" in said:
                pytest.skip(said)
            raise AssertionError(said)
        return process, marker, temporary

    yield start
    for each in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)
        each.communicate()
    for each in made:
        shutil.rmtree(each)


@pytest.mark.every_user
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_nothing_is_left(started, number):
    process, marker, temporary = started()
    process.send_signal(number)
    assert process.wait(60) == 130
    assert eventually(lambda: not processes_of(marker))
    assert os.listdir(temporary) == []
    assert process.stdout.read() == b""


@pytest.mark.parametrize("fault", [None, FAULTS[1]], ids=["no fault", "full disk"])
def test_the_path_of_the_temporary_directory_may_be_long(started, fault):
    process, marker, temporary = started(fault, is_short=False)
    process.terminate()
    assert process.wait(60) == 130
    assert eventually(lambda: not processes_of(marker))
    assert os.listdir(temporary) == []


@pytest.mark.every_user
@pytest.mark.parametrize("fault", FAULTS, ids=["no fault", "full disk", "killed host"])
def test_after_kill_the_workers_end_the_tool_and_remove_its_directory(started, fault):
    process, marker, temporary = started(fault)
    process.kill()
    process.wait(60)
    assert eventually(lambda: not processes_of(marker))
    assert eventually(lambda: not [each for each in os.listdir(temporary) if each.startswith("haft-")])


@pytest.mark.every_user
def test_when_all_are_killed_the_next_run_removes_the_directory(started, monkeypatch):
    process, marker, temporary = started()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    assert eventually(lambda: not processes_of(marker))
    (left,) = [each for each in os.listdir(temporary) if each.startswith("haft-")]
    remove_abandoned(temporary)
    assert left in os.listdir(temporary), "a young directory may belong to a process that starts"
    monkeypatch.setattr("haft.testing.calls.world._SECONDS_UNTIL_LOCKED", 0)
    assert eventually(lambda: remove_abandoned(temporary) or left not in os.listdir(temporary))


def test_a_directory_in_use_is_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("haft.testing.calls.world._SECONDS_UNTIL_LOCKED", 0)
    with World(Scenario("shell")) as world, World(Scenario("shell")):
        remove_abandoned(str(tmp_path))
        assert os.path.isdir(world.workspace)
    assert not os.path.lexists(world.root)


@pytest.mark.every_user
def test_directories_without_permissions_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HAFT_HOME", str(tmp_path / "home"))
    with World(Scenario("shell")) as world:
        deepest = os.path.join(world.workspace, "a", "b", "c")
        os.makedirs(deepest)
        with open(os.path.join(deepest, "file"), "w") as file:
            file.write("text")
        for path in (deepest, os.path.dirname(deepest), os.path.dirname(os.path.dirname(deepest))):
            os.chmod(path, 0)
    assert not os.path.lexists(world.root)
