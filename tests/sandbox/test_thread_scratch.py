"""The `/tmp` that a thread keeps between its calls: who sees it, what bounds it, and what becomes of it.

Through the whole service, as whoever runs the tests; `test_ordinary_user` runs it once more as an ordinary user.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from haft.contracts import BadUsage, Command
from haft.service import ToolService
from sampling import SELDOM

sys.path.insert(0, str(Path(__file__).parent))
from loaded import Loaded, OwnEnvironment

pytestmark = [
    pytest.mark.every_user(share=SELDOM),
    pytest.mark.skipif(sys.platform != "linux", reason="sandbox need Linux"),
]

MB = 1_000_000
DAY = 86_400


async def yes(_request) -> bool:
    return True


@pytest.fixture
def place(outside_tmp):
    (outside_tmp / "workspace").mkdir()
    return outside_tmp


@pytest.fixture
def opened(place):
    """Opens services of one state home, all in the thread `T-1`."""

    @contextlib.asynccontextmanager
    async def opened(workspace=None, **settings):
        settings = {name.replace("__", "."): value for name, value in settings.items()}
        async with ToolService.open(
            workspace or place / "workspace",
            approver=yes,
            home=place / "home",
            installed=False,
            thread="T-1",
            settings=settings,
        ) as service:
            yield Calls(service)

    return opened


class Calls:
    def __init__(self, service):
        self.service = service

    async def __call__(self, command, **words):
        return await self.service.call("shell", {"command": command}, **words)

    async def said(self, command, **words):
        outcome = await self(command, **words)
        assert outcome.status == "done", (outcome.error, outcome.output)
        return outcome.output


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 100))


def kept_in(place) -> list[Path]:
    """What threads keep, each as it lies on the host."""
    return sorted(place.glob("home/scratch/*/tmp"))


def age(place, seconds: float) -> None:
    """Let nobody have used anything for so long."""
    for path in (*place.glob("home/scratch/*/lock"), *place.glob("home/scratch/.swept")):
        os.utime(path, (time.time() - seconds,) * 2)


@pytest.mark.parametrize("engine", ["overlay", "snapshot"])
def test_a_thread_finds_in_tmp_what_an_earlier_call_left_there(opened, engine):
    async def scenario():
        async with opened(changes__engine=engine) as calls:
            await calls.said("echo 1,2 > /tmp/out.csv; echo here > made.txt; echo $TMPDIR")
            assert await calls.said("cat /tmp/out.csv made.txt") == "1,2\nhere\n"
        async with opened(changes__engine=engine) as calls:  # Another host, as of the next command line.
            assert await calls.said("cat $TMPDIR/out.csv") == "1,2\n"
            outcome = await calls("rm /tmp/out.csv; echo more > /tmp/more; touch made2.txt")
            assert [file.path for file in outcome.changes.files] == ["made2.txt"]
            assert outcome.sandbox.to_json()["scratch"] == "thread"
            assert "out.csv" not in (names := await calls.said("ls /tmp")) and "more" in names

    run(scenario())


def test_nothing_but_tmp_is_kept(opened):
    async def scenario():
        async with opened() as calls:
            places = "/run /dev/shm /var/tmp ~"
            await calls.said(f"for place in {places}; do echo x > $place/left; done")
            assert await calls.said(f"for place in {places}; do ls $place | grep -x left; done; true") == ""

    run(scenario())


def test_neither_another_thread_nor_another_workspace_sees_it(opened, place):
    (place / "other").mkdir()

    async def scenario():
        async with opened() as calls, opened(place / "other") as other:
            await calls.said("echo secret > /tmp/mine")
            assert "mine" not in await calls.said("ls /tmp", thread="T-2")
            assert "mine" not in await other.said("ls /tmp")
            # Nor is there a way to the directories of others.
            look = f"ls -A /dev/.threads {place}/home; grep -c '/scratch/' /proc/self/mountinfo; find / -name mine"
            found = (await calls(look, thread="T-2")).output
            assert "1\n" in found and "mine" not in found

    run(scenario())


def test_of_two_calls_at_once_the_first_has_it_and_the_other_is_told(opened, place):
    """Two that share a directory can pass on open files, and with them what only one of them was granted."""

    async def scenario():
        async with opened() as calls:
            await calls.said("echo 1 > /tmp/out.csv")
            first = calls.service.call("shell", {"command": "touch begun; until [ -e /tmp/go ]; do sleep 0.01; done"})
            while not list(place.glob("home/scratch/*/tmp")) or first.status != "in-progress":
                await asyncio.sleep(0.01)
            async with opened() as others:
                other = await others("touch /tmp/go; cat /tmp/out.csv")
            assert "No such file" in other.output and other.sandbox.to_json()["scratch"] == "call"
            assert [note for note in other.notes if "/tmp/out.csv is in the /tmp of its thread" in note]
            kept_in(place)[0].joinpath("go").touch()
            assert (await first).sandbox.to_json()["scratch"] == "thread"
            assert await calls.said("cat /tmp/out.csv") == "1\n"

    run(scenario())


def test_the_tmp_of_a_thread_that_nobody_named_goes_with_its_host(place):
    async def scenario():
        async with ToolService.open(place / "workspace", approver=yes, home=place / "home", installed=False) as service:
            await service.call("shell", {"command": "echo 1 > /tmp/x; touch made"})
            assert (await service.call("shell", {"command": "cat /tmp/x; touch made"})).output == "1\n"
            assert len(kept_in(place)) == 1
        assert kept_in(place) == []

    run(scenario())


def test_a_thread_has_a_name_that_can_be_written_down(opened):
    async def scenario():
        async with opened() as calls:
            with pytest.raises(BadUsage, match="`thread` must be text"):
                await calls("true", thread="\ud800")

    run(scenario())


def test_calls_that_pass_unasked_and_descriptions_have_an_empty_one_of_their_own(opened, place):
    (place / "tools").mkdir()
    tool = place / "tools" / "looks"
    tool.write_text(
        "#!/bin/bash\n"
        "if [ $TOOLBOX_ACTION = describe ]; then\n"
        "  echo name: looks\n"
        '  echo "description: sees $(ls /tmp | grep -x left); $(touch /tmp/described && echo wrote)"\n'
        "else cat /tmp/left; fi\n"
    )
    tool.chmod(0o755)

    async def scenario():
        async with opened(toolbox__paths=[str(place / "tools")]) as calls:
            await calls.said("echo x > /tmp/left")
            tool.write_text(tool.read_text().replace("sees", "saw"))  # It is described anew.
            assert (await calls.service.call("tb__looks", {})).output == "x\n"
            described = next(one.spec.description for one in calls.service.tools() if one.spec.name == "tb__looks")
            assert described == "saw ; wrote"
            assert "described" not in await calls.said("ls /tmp")
            sandbox = calls.service._sandbox
            heard = Heard()
            look = Command(["bash", "-c", "ls /tmp; echo x > /tmp/unasked"])
            await sandbox.launcher("read-only", unasked=True, thread="T-1").run(look, heard)
            await sandbox.describe_launcher().run(look, heard)
            assert b"left" not in heard.data and b"unasked" not in heard.data
            assert "unasked" not in await calls.said("ls /tmp")

    run(scenario())


class Heard:
    def __init__(self):
        self.data = b""

    def output(self, _stream, data):
        self.data += data

    def processes_ended(self, _children): ...


def test_a_call_with_network_sees_it_only_where_that_is_granted_too(opened):
    async def scenario():
        async with opened() as calls:
            await calls.said("echo secret > /tmp/mine")
            look = "ls /tmp | grep -x mine; echo $?; echo x > /tmp/leaked"
            outcome = await calls(look, grants={"network": True})
            assert outcome.output == "1\n" and outcome.sandbox.to_json()["scratch"] == "call"
            assert "leaked" not in await calls.said("ls /tmp")
            missed = await calls("cat /tmp/mine /tmp/none", grants={"network": True})
            assert [note.split(":")[0] for note in missed.notes] == [
                "/tmp/mine is in the /tmp of its thread, but calls with network have an empty /tmp"
            ]
            assert "`--scratch`" in missed.notes[0]
            outcome = await calls(look, grants={"network": True, "scratch": True})
            assert outcome.output == "mine\n0\n" and outcome.sandbox.to_json()["scratch"] == "thread"
        async with opened(sandbox__network=True) as calls:
            assert await calls.said("ls /tmp | grep -x mine; true") == ""

    run(scenario())


def test_a_rule_can_grant_it(opened, place):
    rule = {"tool": "shell", "action": "allow", "matches": {"command": "ls *"}, "dangers": ["outside-workspace"]}

    async def scenario():
        async with opened() as calls:
            await calls.said("echo secret > /tmp/mine")
        for grant, sees in (({"network": True}, False), ({"network": True, "scratch": True}, True)):
            async with opened(permissions=[{**rule, "grant": grant}]) as calls:
                outcome = await calls("ls /tmp/")
                assert outcome.decision.by == "rule" and outcome.sandbox.network
                assert ("mine" in outcome.output) is sees

    run(scenario())


def test_a_call_that_is_only_tried_has_one_of_its_own(opened):
    async def scenario():
        async with opened() as calls:
            await calls.said("echo secret > /tmp/mine")
            outcome = await calls("ls /tmp | grep -x mine; echo x > /tmp/tried; touch made", trial=True)
            assert outcome.output == "" and outcome.changes.state == "committed"
            assert "tried" not in await calls.said("ls /tmp")

    run(scenario())


def test_with_scratch_call_every_call_has_one_of_its_own(opened, place):
    async def scenario():
        async with opened(sandbox__scratch="call") as calls:
            await calls.said("echo x > /tmp/left")
            assert await calls.said("ls /tmp | grep -x left; true") == ""
        assert kept_in(place) == []

    run(scenario())


@pytest.fixture
def elsewhere(place):
    """Opens a service without a name for its thread."""

    @contextlib.asynccontextmanager
    async def opened():
        async with ToolService.open(place / "workspace", approver=yes, home=place / "home", installed=False) as service:
            yield Calls(service)

    opened.base = place
    return opened


def test_a_granted_tmp_is_the_hosts(elsewhere):
    """Whoever grants `/tmp` itself means that of the machine."""

    async def scenario(name):
        async with elsewhere() as calls:
            await calls.said("echo x > /tmp/mine")
            outcome = await calls(f"ls {name}; ls /tmp/mine", grants={"read": ["/tmp"]})
            assert outcome.output.startswith(f"{name}\n") and "No such file" in outcome.output
            assert outcome.sandbox.to_json()["scratch"] == "call"

    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        run(scenario(file.name))


FLOODS = {
    "bytes in many files": "for n in $(seq 20); do head -c 20M /dev/zero > /tmp/$n; done; sleep 60",
    "one file": "head -c 300M /dev/zero > /tmp/x; sleep 60",
    "space without a byte written": "for n in $(seq 9); do fallocate -l 50M /tmp/$n; done; sleep 60",
    "bytes in a closed directory": "mkdir /tmp/d; head -c 300M /dev/zero > /tmp/d/x; chmod 0 /tmp/d; sleep 60",
    "bytes in a file without a name": "exec 3> /tmp/x; rm /tmp/x; head -c 300M /dev/zero >&3; sleep 60",
    "bytes, and an end before anyone looks": "fallocate -l 300M /tmp/x",
}


@pytest.mark.parametrize("what", FLOODS)
def test_a_call_that_floods_it_is_ended_and_it_is_emptied(opened, place, what):
    async def scenario():
        async with opened(limits__memory_bytes=200 * MB) as calls:
            await calls.said("echo x > /tmp/before")
            outcome = await calls(FLOODS[what])
            assert outcome.error is not None and outcome.error.code == "limit-exceeded", outcome.output
            assert outcome.limits.hit == "memory_bytes"
            assert "/tmp of its thread reached" in outcome.error.message and "was emptied" in outcome.error.message
            taken = subprocess.run(["du", "-s", place / "home" / "scratch"], capture_output=True, text=True).stdout
            assert int(taken.split()[0]) < 1000
            assert await calls.said("ls /tmp | grep -v pytest; echo more > /tmp/more; cat /tmp/more") == "more\n"

    run(scenario())


NUMEROUS = {
    "many files": "for n in $(seq 500); do : > /tmp/$n; done; sleep 60",
    "many links": "for n in $(seq 500); do ln -s / /tmp/$n; done; sleep 60",
    "directories in each other": "cd /tmp; for n in $(seq 450); do mkdir d; cd d; done; sleep 60",
}


@pytest.mark.parametrize("what", NUMEROUS)
def test_so_is_one_that_makes_too_many_files(opened, place, what):
    async def scenario():
        async with opened(limits__max_changed_files=300) as calls:
            outcome = await calls(NUMEROUS[what])
            assert (outcome.error and outcome.error.code, outcome.limits.hit) == ("limit-exceeded", "max_changed_files")
            assert "/tmp of its thread reached" in outcome.error.message
            assert await calls.said("ls /tmp | grep -v pytest; true") == ""
        assert not any(path.name.startswith(".gone") for path in (place / "home" / "scratch").iterdir())

    run(scenario())


def test_what_many_calls_leave_is_bounded_together(opened):
    async def scenario():
        async with opened(limits__memory_bytes=200 * MB) as calls:
            await calls.said("fallocate -l 100M /tmp/1")
            outcome = await calls("fallocate -l 100M /tmp/2")
            assert outcome.error is not None and outcome.limits.hit == "memory_bytes"
            assert await calls.said("ls /tmp | grep -v pytest; true") == ""

    run(scenario())


def test_tmp_has_neither_devices_nor_programs_that_run_as_others(opened):
    async def scenario():
        async with opened() as calls:
            found = await calls.said("grep ' /tmp ' /proc/self/mountinfo | tail -n 1")
            assert {"rw", "nosuid", "nodev"} <= set(found.split()[5].split(","))

    run(scenario())


def test_what_a_call_leaves_is_removed_without_being_followed_or_opened(opened, place):
    outside = place / "outside"
    outside.mkdir()
    (outside / "file").write_text("as it was")

    async def scenario():
        async with opened() as calls:
            await calls.said(
                f"cd /tmp; mkfifo pipe; ln -s {outside} link; ln -s {outside}/file file; ln -s / root; mkdir -p d/e;"
                f" ln -s {outside} d/e/link; cp /bin/true suid; chmod 6755 suid; echo x > d/closed; chmod 0 d;"
                " python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/tmp/socket\")'"
            )
        age(place, DAY + 60)
        from haft.changes.store.bounds import Bounds
        from haft.service import StoreFacade
        from haft.storage import StateHome

        store = StoreFacade(StateHome(str(place / "home")), Bounds(10**9, 30))
        assert store.measure().scratch > 0
        assert store.prune(dry_run=True).scratch.threads == 1
        assert kept_in(place) != []
        done = store.prune()
        store.close()
        assert done.scratch.threads == 1 and done.to_json()["scratch"]["bytes"] > 0
        assert kept_in(place) == [] and store is not None

    run(scenario())
    assert (outside / "file").read_text() == "as it was" and stat.S_IMODE(outside.stat().st_mode) == 0o755


def test_what_nobody_used_for_a_day_is_removed_by_the_next_host(opened, place):
    async def scenario():
        async with opened() as calls:
            await calls.said("echo x > /tmp/left", thread="T-idle")
        age(place, DAY - 600)
        async with opened() as calls:
            await calls.said("echo x > /tmp/left")
        assert len(kept_in(place)) == 2
        age(place, DAY + 600)
        async with opened() as calls:
            in_use = calls.service.call(
                "shell", {"command": "echo y > /tmp/used; until [ -e /tmp/go ]; do sleep 0.01; done"}
            )
            while not list(place.glob("home/scratch/*/tmp/used")):
                await asyncio.sleep(0.01)
        await in_use
        assert len(kept_in(place)) == 1 and not list(place.glob("home/scratch/.gone*"))

    run(scenario())


def test_one_that_a_call_uses_is_not_removed(opened, place):
    from haft.sandbox.thread_scratch import remove_scratch

    async def scenario():
        async with opened() as calls:
            waits = calls.service.call(
                "shell", {"command": "echo y > /tmp/used; until [ -e /tmp/go ]; do sleep 0.01; done; cat /tmp/used"}
            )
            while not (found := list(place.glob("home/scratch/*/tmp/used"))):
                await asyncio.sleep(0.01)
            assert remove_scratch(str(place / "home" / "scratch"), time.time() + DAY).threads == 0
            found[0].with_name("go").touch()
            assert (await waits).output == "y\n"

    run(scenario())


def test_an_empty_one_is_not_kept(elsewhere):
    async def scenario():
        async with elsewhere() as calls:
            assert await calls.said("ls -A /tmp; echo x > /tmp/x; rm /tmp/x") == ""
        assert kept_in(elsewhere.base) == []

    run(scenario())


def test_a_workspace_in_tmp_has_a_tmp_for_each_call(opened):
    """Programs obey what lies above the directory they work in, such as the settings of a repository."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))
    (base / "workspace").mkdir()

    async def scenario():
        async with opened(base / "workspace") as calls:
            await calls.said("cd /tmp && git init -q && git config core.fsmonitor /tmp/x.sh; touch made")
            assert "not a git repository" in (await calls("git status; touch made")).output

    try:
        run(scenario())
    finally:
        shutil.rmtree(base)


HOST = """
import asyncio, sys
from haft.service import ToolService
async def yes(_request): return True
async def main():
    async with ToolService.open(sys.argv[1], approver=yes, home=sys.argv[2], installed=False, thread="T-1") as service:
        await service.call("shell", {"command": "echo whole > /tmp/left; sleep 600"})
asyncio.run(main())
"""


def test_a_host_that_is_killed_leaves_nothing_mounted_and_the_thread_goes_on(opened, place, eventually):
    process = subprocess.Popen([sys.executable, "-c", HOST, place / "workspace", place / "home"])
    try:
        eventually(lambda: [one for one in place.glob("home/scratch/*/tmp/left") if one.read_text()], 30)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert "/scratch/" not in Path("/proc/self/mountinfo").read_text()

    async def scenario():
        async with opened() as calls:
            assert await calls.said("cat /tmp/left; rm /tmp/left") == "whole\n"

    run(scenario())


def test_a_loaded_template_has_the_tmp_of_each_calls_thread(place, monkeypatch):
    shutil.rmtree(place / "workspace")
    environment = OwnEnvironment(place / "environment")
    monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
    loaded = Loaded(place, environment)
    loaded.write(
        "keeps",
        run="""
        with open("/tmp/lines", "a+") as file:
            file.write(args.x)
            file.seek(0)
            return file.read()
        """,
    )

    async def go():
        async with loaded:
            assert (await loaded.warmed("keeps", "a")).output.split()[-1] == "a"
            assert (await loaded.warm_call("keeps", "b")).output.split()[-1] == "ab"
            assert (await loaded.warm_call("keeps", "c", thread="T-other")).output.split()[-1] == "c"
            assert (await loaded.warm_call("keeps", "d")).output.split()[-1] == "abd"
            assert (await loaded.warm_call("keeps", "e", thread="T-other")).output.split()[-1] == "ce"
            outcome = await loaded.service.call("shell", {"command": "cat /tmp/lines"})
            assert outcome.output == "abd"

    run(go())
