"""Hosts killed with `kill -9` while they publish changes above the workspace and flush them, and while their views are
in use: what was answered is whole in the workspace, and what was not is there whole or not at all."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from haft import ToolService
from sampling import IS_WHOLE, steps

sys.path.insert(0, str(Path(__file__).parent))
from fingerprint import difference
from held_views import Held
from test_killed import MANY, SOME, both, forge, goes_on, judged, lives, yes

__all__ = ["forge", "lives"]  # Fixtures.

pytestmark = [
    pytest.mark.every_user,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays"),
]

PUBLISHED = {
    "a call": {"do": ["shell", SOME], "engine": "overlay", "pinned": True},
    "a written file": {"do": ["write", "a.txt", "hello\n"], "pinned": True},
}


def registers(home):
    register = "*/views/taken/*", "*/views/layers/*", "*/views/files/*", "*/views/number.*"
    return [path for pattern in register for path in Path(home.changes).glob(pattern)]


@pytest.mark.parametrize("name", PUBLISHED)
def test_killed_at_every_step_of_publishing_and_flushing_it_is_whole_or_gone(name, lives, caplog):
    case = PUBLISHED[name]
    before, after, ops = both(lives, case)
    stride = 1 if IS_WHOLE else {"a call": 180, "a written file": 90}[name]
    for at in steps(MANY, stride, f"killed publishing: {name}"):
        caplog.clear()
        life = lives(case, at)
        if life.survived:
            assert at > ops - 20
            break
        with caplog.at_level(logging.WARNING, "haft"):
            life.recover()
        if {"answered": "committed"} in life.said:
            assert difference(after, life.tree(), ignoring=("mtime_ns",) if name != "a call" else ()) == []
            assert life.states()[life.run] == "committed"
            caplog.clear()
        judged(life, before, after, caplog)
        goes_on(life, before, after)
        life.use(lambda service: service.call("write_file", {"path": "next", "content": "x"}))
        assert registers(life.home) == []
        life.erase()


HOST = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[3])
from held_views import Held
from haft import ToolService

async def yes(request):
    return True

async def main():
    held = Held()
    settings = {"changes.flush_seconds": 0}
    async with ToolService.open(sys.argv[1], approver=yes, home=sys.argv[2], installed=False, tools=[held.tool()],
                                settings=settings) as service:
        run = service.call("hold")
        await held.begun.wait()
        print("holds", flush=True)
        for line in iter(sys.stdin.readline, ""):
            outcome = await service.call("shell", {"command": line})
            print(outcome.status, outcome.changes.state, flush=True)

asyncio.run(main())
"""


@contextlib.contextmanager
def another(places):
    """Another process on the workspace, with a call that has a view."""
    arguments = [places["workspace"], places["home"], Path(__file__).parent]
    with subprocess.Popen(
        [sys.executable, "-c", HOST, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "holds\n"
        try:
            yield process
        finally:
            process.kill()


def tell(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a").write_text("old\n")
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home"}


def use(places, body):
    async def main():
        held = Held()
        settings = {"changes.flush_seconds": 0}
        async with ToolService.open(
            **places, approver=yes, installed=False, tools=[held.tool()], settings=settings
        ) as service:
            await body(service, held)

    asyncio.run(main())


def test_what_a_dead_process_had_published_is_seen_and_flushed_by_another(places, eventually):
    path = places["workspace"] / "a"

    async def body(service, held):
        holding = service.call("hold")
        await held.begun.wait()
        with another(places) as process:
            assert tell(process, "echo published > a; echo b > b") == "done committed"
            assert path.read_text() == "old\n"
            os.kill(process.pid, signal.SIGKILL)
        assert path.read_text() == "old\n"
        assert (await service.call("read_file", {"path": "a"})).output == "published\n"
        assert (await service.call("edit_file", {"path": "a", "old_string": "p", "new_string": "P"})).status == "done"
        held.opened.set()
        await holding
        await asyncio.to_thread(eventually, lambda: path.read_text() == "Published\n")
        assert (places["workspace"] / "b").read_text() == "b\n"

    use(places, body)


def test_the_views_of_a_dead_process_keep_nothing_from_the_workspace(places, eventually):
    path = places["workspace"] / "a"

    async def body(service, held):
        with another(places) as process:
            assert (await service.call("shell", {"command": "echo new > a"})).changes.state == "committed"
            assert path.read_text() == "old\n"
            os.kill(process.pid, signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: path.read_text() == "new\n")
        register = service._transactions.publisher.register
        assert register.views() == []

    use(places, body)


def test_two_processes_that_publish_at_once_lose_nothing(places):
    count = 6 if IS_WHOLE else 3
    lines = [f"echo {number} >> mine; echo x > f{number}" for number in range(count)]

    async def body(service, held):
        holding = service.call("hold")
        await held.begun.wait()
        with another(places) as process:
            for line in lines:
                process.stdin.write(line.replace("mine", "theirs").replace("> f", "> g") + "\n")
            process.stdin.flush()
            for line in lines:
                assert (await service.call("shell", {"command": line})).status == "done"
            assert [process.stdout.readline() for _ in lines] == ["done committed\n"] * len(lines)
            seen = (await service.call("shell", {"command": "cat mine theirs; ls | wc -l"})).output
            assert seen.split() == [*map(str, range(count)), *map(str, range(count)), str(2 * count + 3)]
            assert os.listdir(places["workspace"]) == ["a"]
            held.opened.set()
            await holding
            os.kill(process.pid, signal.SIGKILL)
        await asyncio.to_thread(service._transactions.publisher.settle)

    use(places, body)
    assert len(os.listdir(places["workspace"])) == 2 * count + 3
    assert json.dumps([*Path(places["home"]).glob("changes/*/views/files/*")]) == "[]"
