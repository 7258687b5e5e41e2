"""Views: each call sees the workspace as it was committed when the call began, and commits wait above the workspace's
own files while older views are in use."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haft import ToolService
from haft.changes.commit.steps import StepRunner
from haft.changes.published import layer_files, publisher
from sampling import IS_WHOLE

sys.path.insert(0, str(Path(__file__).parent))
from fingerprint import difference, fingerprint
from held_views import Held, HeldLine

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]

LOOK = (
    r"find . -mindepth 1 \( -type f -printf '%P|%y|%m|%s\n' -o -printf '%P|%y|%m|%l\n' \) 2>/dev/null | LC_ALL=C sort;"
    "find . -type f -readable -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 cat"
)
STEPS = {
    "files": "echo more >> a; rm b; echo new > c; : > empty; chmod 600 d/x; printf 'x' > $'odd \\n name'; mkdir -p n/m",
    "folders": "rm -r d; mkdir d; echo other > d/only; mv e E; mkdir hollow; rm -r gone; chmod 711 n",
    "kinds": "rm c; mkdir c; echo in > c/in; rm -r n; echo was > n; ln -s a link; ln -sfn nowhere old-link",
    "back": "rm -r c; echo file > c; rm n; mkdir n; echo again > n/f; rm link; mkdir link; rm old-link; cp a old-link",
    "names": "ln E/y hard; echo both >> hard; mkdir -p gone/again; mv E e; rm -r hollow; mkfifo pipe",
    "closed": "mkdir shut; echo in > shut/f; chmod 555 shut; chmod 0 c; rm pipe; rm -r d; echo flat > d",
}


@pytest.fixture
def base(outside_tmp):
    outside_tmp.chmod(0o755)
    workspace = outside_tmp / "workspace"
    workspace.mkdir()
    return outside_tmp


def furnish(workspace):
    for path in ("a", "b", "d/x", "d/y/z", "e/y", "gone/f"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(f"{path}\n")
    (workspace / "old-link").symlink_to("a")


async def yes(_request):
    return True


@asynccontextmanager
async def opened(base, held=None, **settings):
    settings = {"changes.flush_seconds": 0, **{name.replace("__", "."): value for name, value in settings.items()}}
    tools = [] if held is None else [held.tool()]
    async with ToolService.open(
        base / "workspace", home=base / "home", tools=tools, approver=yes, installed=False, settings=settings
    ) as service:
        yield service


@asynccontextmanager
async def pinned(base, **settings):
    """A service in which a call keeps its view, so that commits are published above the workspace's own files."""
    held = Held()
    async with opened(base, held, **settings) as service:
        run = service.call("hold")
        await held.begun.wait()
        service.let_go = held.opened.set
        service.held = run
        try:
            yield service
        finally:
            held.opened.set()
            await run


def layers(service):
    return service._transactions.publisher.register.open_layers()


async def settled(service):
    await asyncio.to_thread(service._transactions.publisher.settle)


async def good(run):
    outcome = await run
    assert outcome.status == "done", outcome.error
    return outcome


def write(service, path, content):
    return service.call("write_file", {"path": path, "content": content})


def shell(service, command, **options):
    return service.call("shell", {"command": command}, **options)


def plain_look(place):
    return subprocess.run(["bash", "-c", LOOK], cwd=place, capture_output=True, text=True, check=True).stdout


def test_every_kind_of_entry_is_seen_through_published_layers_and_arrives_when_they_are_flushed(base):
    workspace, plain = base / "workspace", base / "plain"
    plain.mkdir()
    for place in (workspace, plain):
        furnish(place)
    at_first = fingerprint(workspace)

    async def main():
        async with pinned(base) as service:
            runs = []
            for number, step in enumerate(STEPS.values()):
                subprocess.run(["bash", "-ec", step], cwd=plain, check=True)
                runs.append((await good(shell(service, f"set -e; {step}"))).run_id)
                assert len(layers(service)) == number + 1
                assert (await good(shell(service, LOOK))).output == plain_look(plain)
            assert difference(at_first, fingerprint(workspace), ignoring=("mtime_ns",)) == []
            service.let_go()
            await service.held
            await settled(service)
            assert plain_look(workspace) == plain_look(plain)
            for run in reversed(runs):
                await good(service.undo(run))
            assert difference(at_first, fingerprint(workspace), ignoring=("mtime_ns",)) == []

    asyncio.run(main())


def test_tools_in_this_process_read_and_write_what_is_published(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with pinned(base) as service:

            async def say(name, **arguments):
                return (await good(service.call(name, arguments))).output

            await write(service, "a", "published\n")
            await good(shell(service, "rm -r d; echo flat > d; mkdir new; echo needle > new/f; rm b"))
            assert await say("read_file", path="a") == "published\n"
            assert await say("read_file", path="d") == "flat\n"
            assert (await say("list_directory", path=".")).split("\n")[:3] == ["a (10 bytes)", "d (5 bytes)", "e/"]
            assert await say("find_files", pattern="new/*") == "new/f"
            assert (await say("search", pattern="needle|b$")).strip() == "new/f:1:needle"
            await say("edit_file", path="new/f", old_string="needle", new_string="thread")
            await say("write_file", path="new/deep/g", content="g")
            for path in ("b", "d/x"):
                assert (await service.call("read_file", {"path": path})).error.code == "tool-failed"
            assert (await good(shell(service, "cat new/f new/deep/g"))).output == "thread\ng"
            assert (workspace / "a").read_text() == "a\n" and not (workspace / "new").exists()
            service.let_go()
            await service.held
            await settled(service)
            assert (workspace / "new/f").read_text() == "thread\n" and (workspace / "d").read_text() == "flat\n"

    asyncio.run(main())


def test_a_view_lasts_from_the_beginning_of_a_call_to_its_end_whatever_is_committed_and_undone(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with opened(base) as service:
            look = "cat a; ls -x; cat new 2>/dev/null"
            line = await HeldLine(service, base, look, look).begin()
            await good(write(service, "a", "one\n"))
            done = await good(shell(service, "rm -r d; echo n > new"))
            other = await HeldLine(service, base, look, look).begin()
            await good(write(service, "a", "two\n"))
            assert len(layers(service)) == 3
            first, second = (await other.end()).output.split("begun\n")
            assert first == second == "one\na  b  e  gone  new  old-link\nn\n"
            first, second = (await line.end()).output.split("begun\n")
            assert first == second == "a\na  b  d  e  gone  old-link\n"
            await good(service.undo(done.run_id))
            assert layers(service) == [] and (workspace / "a").read_text() == "two\n" and (workspace / "d/x").exists()

    asyncio.run(main())


@pytest.mark.parametrize("isolation", ["snapshot", "serial"])
def test_a_call_that_outlives_flush_seconds_says_that_its_view_was_torn(base, isolation, eventually):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with opened(base, changes__flush_seconds=0.05) as service:
            line = await HeldLine(service, base, "cat a", "cat a; ls new", isolation=isolation).begin()
            made = await good(shell(service, "echo changed > a; mkdir new"))
            await asyncio.to_thread(eventually, (workspace / "new").exists)
            outcome = await line.end()
            assert any(made.run_id in note and "changes.flush_seconds" in note for note in outcome.notes)
            if isolation == "serial":
                assert outcome.error.code == "conflict"
                return
            assert outcome.status == "done"

    asyncio.run(main())


def test_with_more_layers_than_may_wait_nothing_is_lost_and_the_torn_call_is_told(base, monkeypatch):
    workspace, count = base / "workspace", 64
    if not IS_WHOLE:
        count = 8
        monkeypatch.setattr(publisher, "MOST_OPEN", count - 4)

    async def main():
        async with pinned(base) as service:
            for number in range(count):
                await good(write(service, f"f{number:02}", f"{number}\n"))
            assert len(layers(service)) <= count - 3
            outcome = await good(shell(service, "cat f*; rm f*; ls"))
            assert outcome.output.split() == [str(number) for number in range(count)]
            service.let_go()
            assert any("flush_seconds" in note for note in (await service.held).notes)
            await settled(service)
            assert os.listdir(workspace) == []

    asyncio.run(main())


class HalfWay:
    """Stops what a thread does to files when half of it is done, until the test lets it go on."""

    def __init__(self, monkeypatch, half):
        self.half, self.names = half, []
        self.loop, self.stops = asyncio.get_running_loop(), asyncio.Queue()
        for owner, name in ((layer_files, "link"), (StepRunner, "apply")):
            monkeypatch.setattr(owner, name, self._counting(name, getattr(owner, name)))
        self._begin()

    def _begin(self):
        self.counts = dict.fromkeys(("link", "apply"), 0)

    def _counting(self, name, function):
        def counting(*words):
            self.counts[name] += 1
            if self.counts[name] == self.half:
                go_on = threading.Event()
                self.loop.call_soon_threadsafe(self.stops.put_nowait, (name, go_on))
                assert go_on.wait(60), "nobody let it go on"
            return function(*words)

        return counting

    async def during(self, run, *names, beside):
        """The outcome of a call. At each of these stops `beside` takes place."""
        self._begin()
        running = asyncio.ensure_future(good(run))
        for name in names:
            stopped, go_on = await asyncio.wait_for(self.stops.get(), 60)
            assert stopped == name
            try:
                await beside()
            finally:
                go_on.set()
        return await running


async def ended_or_waiting(*runs):
    """Return when each of these calls has ended, or has said that it waits for another one."""

    async def one(run):
        async for event in run:
            if event.type == "status" and "waitsFor" in event.facts:
                return

    await asyncio.gather(*(one(run) for run in runs))


def test_readers_see_a_commit_and_its_undo_wholly_or_not_at_all(base, monkeypatch):
    """Half of the layer is made, half of it is flushed, and half of it is undone while calls begin to read."""
    workspace, count = base / "workspace", 1500 if IS_WHOLE else 100
    (workspace / "many").mkdir()
    for number in range(count):
        (workspace / f"many/{number}").write_text("old\n")
    change = "cd many; for f in *; do echo new > $f; done; for f in *; do echo new > new-$f; done"
    cat = "cat many/* | sort -u; ls many | wc -l"

    async def main():
        async with opened(base) as service:
            half_way, readers = HalfWay(monkeypatch, count), []

            def judge(outcome, expected):
                if outcome.tool == "shell":
                    words, listed = outcome.output.split()[:-1], int(outcome.output.split()[-1])
                    assert (words, listed) == ([expected], count if expected == "old" else 2 * count)
                elif outcome.tool == "find_files":
                    assert ("many/new-" in outcome.output) == (expected == "new")
                else:
                    found = {line.rpartition(":")[2] for line in outcome.output.splitlines() if ":1:" in line}
                    assert found == {expected}

            async def read():
                readers[:] = [
                    shell(service, cat),
                    service.call("find_files", {"pattern": "many/*"}),
                    service.call("search", {"pattern": "^old|^new", "path": "many"}),
                ]
                await ended_or_waiting(*readers)

            async def saw(expected):
                for reader in readers:
                    judge(await good(reader), expected)

            line = await HeldLine(service, base, cat, cat).begin()
            made = await half_way.during(shell(service, change), "link", beside=read)
            await saw("old")
            assert len(layers(service)) == 1
            flushing = half_way.during(line.run, "apply", beside=read)
            first, second = [*(await asyncio.gather(flushing, line.end()))[1].output.split("begun\n")]
            assert first == second == f"old\n{count}\n"
            await saw("new")
            await settled(service)
            await half_way.during(service.undo(made.run_id), "apply", beside=read)
            await saw("old")

    asyncio.run(main())
    assert len(os.listdir(workspace / "many")) == count


PLUGIN = """
class Plugin:
    async def get_tool_schemas(self, state):
        return [{"name": "look", "description": "Read a.", "input_schema": {"type": "object", "properties": {}}}]

    async def execute_tool(self, name, arguments, state):
        with open("a") as file:
            return file.read()
"""


def test_a_session_between_its_calls_keeps_nothing_from_the_workspace(base):
    (base / "plugin.py").write_text(PLUGIN)
    furnish(base / "workspace")

    async def main():
        async with opened(base, plugins=[f"path:{base}/plugin.py"]) as service:
            assert (await good(service.call("look"))).output == "a\n"
            assert service._transactions.publisher.register.views() == []
            for text in ("one\n", "two\n"):
                await good(shell(service, f"printf '{text}' > a"))
                assert layers(service) == [] and (base / "workspace/a").read_text() == text
                assert (await good(service.call("look"))).output == text
            line = await HeldLine(service, base, "true", "cat a").begin()
            await good(write(service, "a", "three\n"))
            assert len(layers(service)) == 1
            assert (await line.end()).output == "begun\ntwo\n"
            await settled(service)
            assert (base / "workspace/a").read_text() == (await good(service.call("look"))).output == "three\n"

    asyncio.run(main())


def test_a_file_that_a_person_changes_beneath_a_published_change_keeps_the_change_of_the_person(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with pinned(base) as service:
            made = await good(shell(service, "echo haft > a; echo haft > new; echo haft >> e/y"))
            after = await good(shell(service, "echo later > other"))
            (workspace / "a").write_text("person\n")
            service.let_go()
            await service.held
            await settled(service)
            assert (workspace / "a").read_text() == "person\n"
            assert not (workspace / "new").exists() and (workspace / "e/y").read_text() == "e/y\n"
            assert (workspace / "other").read_text() == "later\n"
            states = {row.run: row.state for row in service._transactions.ledger.all()}
            assert (states[made.run_id], states[after.run_id]) == ("held", "committed")
            await good(write(service, "next", "x"))

    asyncio.run(main())


def test_a_disk_that_is_full_while_a_layer_is_made_costs_no_commit(base, monkeypatch):
    workspace = base / "workspace"
    furnish(workspace)

    def full(*_words):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def main():
        async with pinned(base) as service:
            await good(write(service, "b", "layer\n"))
            monkeypatch.setattr(layer_files, "link", full)
            await good(write(service, "a", "at once\n"))
            assert (workspace / "a").read_text() == "at once\n" and (workspace / "b").read_text() == "layer\n"
            service.let_go()
            assert any("flush_seconds" in note for note in (await service.held).notes)

    asyncio.run(main())


def test_a_disk_that_is_full_while_layers_are_flushed_takes_back_no_commit(base, monkeypatch):
    workspace = base / "workspace"
    furnish(workspace)
    apply, fails = StepRunner.apply, []

    def failing(runner, step):
        if step.path == "new" and len(fails) < 3:
            fails.append(step.path)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        apply(runner, step)

    async def main():
        async with pinned(base) as service:
            made = await good(shell(service, "echo haft > a; echo haft > new; rm b"))
            monkeypatch.setattr(StepRunner, "apply", failing)
            service.let_go()
            await service.held
            while layers(service):
                assert (await good(shell(service, "cat a new; ls b 2>&1 | wc -l"))).output == "haft\nhaft\n1\n"
            assert (workspace / "a").read_text() == (workspace / "new").read_text() == "haft\n"
            await good(service.undo(made.run_id))
            assert (workspace / "b").read_text() == "b\n"

    asyncio.run(main())
    assert len(fails) == 3


def test_a_command_reaches_neither_layers_nor_the_register_nor_other_views(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with pinned(base) as service:
            await good(write(service, "a", "published\n"))
            area = service._transactions.area.path
            number = layers(service)[0].number
            assert Path(area, f"views/files/{number}/a").read_text() == "published\n"
            reach = (
                f"cat {area}/views/files/*/a; ls {area}/views {area}/live; echo evil > {area}/views/files/{number}/a;"
                f"rm -rf {area}/views; ls -d /var/tmp/*/*/changes/*/views/layers/* 2>/dev/null;"
                "cat /proc/self/mountinfo | grep -c upperdir; echo evil > /proc/self/cwd/../views/number"
            )
            for options in ({}, {"grants": {"write": [str(base / "elsewhere")]}}):
                (base / "elsewhere").mkdir(exist_ok=True)
                outcome = await shell(service, reach, **options)
                assert "published" not in outcome.output and "r_" not in outcome.output.replace(area, "")
            assert len(layers(service)) == 1
            assert (await good(shell(service, "cat a"))).output == "published\n"

    asyncio.run(main())


def test_a_process_left_behind_by_a_call_changes_nothing_that_is_published(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with pinned(base) as service:
            left = "exec 3>>a; (for i in 1 2 3 4 5; do echo late >&3; echo late > b; sleep 0.05; done) & echo first >&3"
            outcome = await shell(service, f"{left}; setsid sh -c 'sleep 0.2; echo later > c' & exit 0")
            assert outcome.status == "done"
            published = (await good(shell(service, "cat a b; ls"))).output
            service.let_go()
            await service.held
            await settled(service)
            assert (await good(shell(service, "sleep 0.4; cat a b; ls"))).output == published

    asyncio.run(main())


def test_the_state_directory_may_be_removed_between_calls(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with opened(base) as service:
            area = Path(service._transactions.area.path)
            await good(write(service, "a", "one\n"))
            shutil.rmtree(area / "views")
            await good(write(service, "a", "two\n"))
            line = await HeldLine(service, base, "cat a", "cat a").begin()
            await good(shell(service, "echo three > a; cat a"))
            assert (await line.end()).output == "two\nbegun\ntwo\n"
            (area / "views/number").write_text("nonsense")
            assert (await good(shell(service, "cat a; echo four > a"))).output == "three\n"
        assert (workspace / "a").read_text() == "four\n"

    asyncio.run(main())


def test_layers_that_somebody_removed_are_told_and_block_nobody(base):
    workspace = base / "workspace"
    furnish(workspace)

    async def main():
        async with pinned(base) as service:
            await good(write(service, "b", "lost\n"))
            shutil.rmtree(Path(service._transactions.area.path, "views"))
            await good(shell(service, "cat a; echo new > a"))
            service.let_go()
            await service.held
            await good(write(service, "next", "x"))
            await settled(service)
            assert (workspace / "a").read_text() == "new\n" and (workspace / "next").read_text() == "x"
            assert (workspace / "b").read_text() in ("b\n", "lost\n")

    asyncio.run(main())


def test_a_checkout_by_a_person_beneath_published_changes_loses_nothing_of_the_person(base):
    workspace = base / "workspace"
    furnish(workspace)

    def git(*words):
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words]
        subprocess.run(command, cwd=workspace, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "other")
    (workspace / "a").write_text("other a\n")
    (workspace / "e/y").write_text("other y\n")
    git("commit", "-qam", "two")
    git("checkout", "-q", "main")

    async def main():
        async with pinned(base) as service:
            made = [
                await good(shell(service, line)) for line in ("echo haft > a", "echo haft > b", "echo h > a; rm -r d")
            ]
            git("checkout", "-q", "other")
            service.let_go()
            await service.held
            await settled(service)
            states = {row.run: row.state for row in service._transactions.ledger.all()}
            assert [states[each.run_id] for each in made] == ["held", "committed", "held"]
            await good(write(service, "next", "x"))

    asyncio.run(main())
    assert (workspace / "a").read_text() == "other a\n" and (workspace / "e/y").read_text() == "other y\n"
    assert (workspace / "b").read_text() == "haft\n" and (workspace / "d/x").exists()
