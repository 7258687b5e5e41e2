"""The life of loaded programs: when they end, which limits hold for them, and that nothing is left."""

import asyncio
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loaded import Loaded, OwnEnvironment, Watched

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="nothing is kept loaded elsewhere")
SAYS = "return [args.x, open('kept').read() if os.path.exists('kept') else None]"


@pytest.fixture
def loading(tmp_path, monkeypatch):
    """Services to be."""

    def loading(**words) -> Loaded:
        environment = OwnEnvironment(tmp_path / "environment")
        monkeypatch.setattr("haft.toolsets.templates._OnUse._real", lambda _self: environment)
        return Loaded(tmp_path, environment, **words)

    return loading


@pytest.mark.every_user
def test_a_template_with_the_real_library_is_answered_from_a_fork(loading):
    loaded = loading()
    loaded.environment.show_real_libraries()
    loaded.write("real", "open('made', 'a').write(args.x)\nreturn [args.x, args.model_dump(), os.getcwd()]")

    async def go():
        async with loaded:
            first = await loaded.warmed("real", "one")
            if not first.sandbox.layers:
                pytest.skip("nothing is kept loaded without a sandbox")
            for x in ("two", "three"):
                outcome = await loaded.warm_call("real", x)
                assert outcome.output == str([x, {"x": x}, str(loaded.workspace)])
                assert [(one.path, one.type) for one in outcome.changes.files] == [("made", "modify")]
            assert (loaded.workspace / "made").read_text() == "onetwothree"

    asyncio.run(go())


def test_a_changed_file_is_used_at_once_and_its_old_worker_ends(loading, eventually, left_of):
    loaded = loading()
    folder = loaded.write("kept", "return 'old'")

    async def go():
        async with loaded:
            await loaded.warmed("kept")
            assert (await loaded.warm_call("kept")).output == "old"
            loaded.write("kept", "return 'newer'")
            assert (await loaded.call("kept")).output == "newer"
            assert await loaded.settled("kept") is None
            assert (await loaded.warm_call("kept")).output == "newer"
            assert loaded.warm_pool.count == 1
            await asyncio.to_thread(eventually, lambda: len(left_of(str(folder))) <= 2)

    asyncio.run(go())


def test_an_environment_that_was_made_anew_is_used_at_once(loading):
    loaded = loading()
    loaded.environment.library("library", "WORD = 'old'")
    loaded.write("kept", "return library.WORD", top="import library")

    async def go():
        async with loaded:
            await loaded.warmed("kept")
            loaded.environment.library("library", "WORD = 'newer'")
            loaded.environment.mark = "second"
            assert (await loaded.call("kept")).output == "newer"
            await loaded.settled("kept")
            assert (await loaded.warm_call("kept")).output == "newer"

    asyncio.run(go())


def test_calls_at_once_never_mix(loading):
    loaded = loading()
    loaded.write("kept", "import time\ntime.sleep(0.05)\nopen(args.x, 'a').write(args.x)\nreturn args.x * 1000")

    async def go():
        async with loaded:
            await loaded.warmed("kept")
            for _ in range(2):
                outcomes = await asyncio.gather(*(loaded.call("kept", x) for x in "bcd"))
                assert [one.output for one in outcomes] == [x * 1000 for x in "bcd"]
                assert [[file.path for file in one.changes.files] for one in outcomes] == [[x] for x in "bcd"]
            assert True in loaded.warm_pool.taken
            assert False in loaded.warm_pool.taken[1:]

    asyncio.run(go())


@pytest.mark.parametrize("how", ["cancelled", "deadline"])
def test_a_warm_call_that_is_ended_leaves_what_a_cold_one_leaves(loading, how, mark, left_of):
    loaded = loading()
    slow = f"""
    import subprocess
    if args.x == "slow":
        open("begun-" + os.path.basename(os.path.dirname(__file__))[:4], "w").write(args.x)
        subprocess.run(["sleep", "1000"], env={{"MARK": "{mark}"}})
    return args.x
    """
    loaded.write("kept", slow)
    loaded.write("cold", slow)

    async def ended(name):
        run = loaded.service.call(name, {"x": "slow"}, timeout=1.5 if how == "deadline" else None)
        while how == "cancelled" and not await asyncio.to_thread(left_of, mark):
            await asyncio.sleep(0.01)
        if how == "cancelled":
            run.cancel()
        outcome = await run
        assert not left_of(mark)
        return outcome

    async def go():
        async with loaded:
            wanted = await ended("cold")
            await loaded.warmed("kept")
            before = len(loaded.warm_pool.taken)
            found = await ended("kept")
            assert loaded.warm_pool.taken[before:] == [True]
            assert found.status == wanted.status
            assert (found.error and found.error.code) == (wanted.error and wanted.error.code)
            assert [one.type for one in found.changes.files] == [one.type for one in wanted.changes.files]
            assert (await loaded.call("kept", "next")).output == "next"
            assert await loaded.settled("kept") is None
            assert (await loaded.warm_call("kept", "after")).output == "after"

    asyncio.run(asyncio.wait_for(go(), 60))


HUNGRY = {
    "memory": (
        "kept = bytearray(900_000_000)\nkept[::4096] = b'x' * len(kept[::4096])",
        "limits.memory_bytes",
        300_000_000,
    ),
    "processes": (
        "for _ in range(60):\n    if os.fork() == 0:\n        import time; time.sleep(1000)",
        "limits.max_processes",
        20,
    ),
}


@pytest.mark.parametrize("what", HUNGRY)
def test_a_warm_call_is_held_to_the_limits_and_the_next_is_fine(loading, what):
    run, limit, amount = HUNGRY[what]
    loaded = loading(**{limit: amount})
    body = "if args.x == 'much':\n" + textwrap.indent(run, "    ") + "\nreturn args.x"
    for name in ("cold", "kept"):
        loaded.write(name, body)

    async def go():
        async with loaded:
            wanted = await loaded.call("cold", "much")
            await loaded.warmed("kept")
            found = await loaded.warm_call("kept", "much")
            assert (found.status, found.error.code) == (wanted.status, wanted.error.code)
            assert found.status == "error"
            assert (await loaded.call("kept", "next")).output == "next"

    asyncio.run(go())


def test_a_warm_call_can_be_undone(loading):
    loaded = loading()
    (loaded.workspace / "kept").write_text("as it was")
    loaded.write("kept", "open('kept', 'w').write(args.x)\nopen('made', 'w').write(args.x)\nreturn 1")

    async def go():
        async with loaded:
            await loaded.service.call("kept", {"x": "as it was"})
            await loaded.settled("kept")
            outcome = await loaded.warm_call("kept", "other")
            await loaded.service.undo(outcome.run_id)
            assert (loaded.workspace / "kept").read_text() == "as it was"

    asyncio.run(go())


def test_one_that_nobody_calls_ends(loading, eventually, left_of):
    loaded = loading()
    folder = loaded.write("kept", "return 1")
    loaded.warm_pool = Watched(idle_seconds=0.2)

    async def go():
        async with loaded:
            await loaded.call("kept")
            while loaded.warm_pool.count == 0:
                await asyncio.sleep(0.005)
            while loaded.warm_pool.count:
                await asyncio.sleep(0.005)
            await asyncio.to_thread(eventually, lambda: not left_of(str(folder)))
            assert (await loaded.call("kept")).output == "1"

    asyncio.run(asyncio.wait_for(go(), 30))


def test_whoever_was_not_called_for_longest_ends_where_there_are_too_many(loading):
    loaded = loading()
    loaded.warm_pool = Watched(most=2)
    names = ("one", "two", "three")
    for name in names:
        loaded.write(name, "return 1")

    async def go():
        async with loaded:
            for name in names:
                await loaded.warmed(name)
            assert [loaded.warm_pool.free(loaded.folder(name)) for name in names] == [0, 1, 1]

    asyncio.run(go())


def test_nothing_is_left_when_the_service_is_closed(loading, eventually, left_of):
    loaded = loading()
    folders = [loaded.write(name, "return 1") for name in ("one", "two")]

    async def go():
        async with loaded:
            for name in ("one", "two"):
                await loaded.warmed(name)
            assert all(left_of(str(folder)) for folder in folders)

    asyncio.run(go())
    eventually(lambda: not any(left_of(str(folder)) for folder in folders))


HOST = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import haft.toolsets.environments
from loaded import Loaded, OwnEnvironment
base = Path(sys.argv[2])
environment = OwnEnvironment(base / "environment")
haft.toolsets.environments.TemplateEnvironments = lambda *_given: environment
loaded = Loaded(base, environment)
loaded.write("kept", "import time\\nif args.x == 'slow': time.sleep(1000)\\nreturn 1")
async def go():
    async with loaded:
        await loaded.warmed("kept")
        print("ready", flush=True)
        await loaded.warm_call("kept", "slow")
asyncio.run(go())
"""


def test_nothing_is_left_when_the_host_is_killed(tmp_path, eventually, left_of):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(Path(__file__).parent), str(tmp_path)], stdout=subprocess.PIPE
    )
    assert host.stdout.readline() == b"ready\n"
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    eventually(lambda: not left_of(str(tmp_path / "templates")))


def test_a_workspace_that_was_replaced_is_the_one_that_is_worked_in(loading):
    loaded = loading()
    loaded.write("kept", "open('made', 'w').write(args.x)\nreturn sorted(os.listdir())")

    async def go():
        async with loaded:
            await loaded.warmed("kept")
            shutil.move(loaded.workspace, f"{loaded.workspace}.old")
            loaded.workspace.mkdir()
            (loaded.workspace / "other").write_text("")
            assert (await loaded.call("kept", "two")).output == "['made', 'other']"
            assert (await loaded.call("kept", "three")).output == "['made', 'other']"
            assert await loaded.settled("kept") is None
            assert (await loaded.warm_call("kept", "four")).output == "['made', 'other']"
            assert (loaded.workspace / "made").read_text() == "four"

    asyncio.run(go())


def test_a_workspace_may_have_any_name(loading, tmp_path):
    loaded = loading(workspace=tmp_path / "a b,c:d\\e=ü\N{SNOWMAN}")
    loaded.write("kept", "open('made', 'a').write(args.x)\nreturn os.getcwd()")

    async def go():
        async with loaded:
            await loaded.warmed("kept", "1")
            assert (await loaded.warm_call("kept", "2")).output == str(loaded.workspace)
            assert (loaded.workspace / "made").read_text() == "12"

    asyncio.run(go())


def test_what_changed_in_the_workspace_between_two_calls_is_seen(loading):
    loaded = loading()
    loaded.write("kept", SAYS, top="os.path.exists('kept')")

    async def go():
        async with loaded:
            await loaded.warmed("kept")
            for word in ("one", "two"):
                (loaded.workspace / "kept").write_text(word)
                assert (await loaded.warm_call("kept", "x")).output == str(["x", word])

    asyncio.run(go())


def test_random_numbers_are_others_in_every_call(loading):
    loaded = loading()
    loaded.write(
        "kept", "import uuid\nreturn [random.random(), str(uuid.uuid4())]", top="import random\nrandom.random()"
    )

    async def go():
        async with loaded:
            said = [(await loaded.warmed("kept")).output]
            said += [(await loaded.warm_call("kept")).output for _ in range(3)]
            assert len(set(said)) == 4

    asyncio.run(go())
