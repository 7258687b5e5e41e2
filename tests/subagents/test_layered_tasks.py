"""Tasks of sub-agents in layers of their own, side by side: nothing of them is lost, and each can be undone alone."""

import asyncio
import shutil
import sys

import pytest

from haft.testing.scripted_model import call, say

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has overlays")

LINES = [f"line {number}\n" for number in range(9)]
LAYERED = {"editor": {"description": "edits", "tools": ["edit_file", "shell", "read_file"], "isolation": "layer"}}


def with_lines(**changed):
    return "".join(f"{changed.get(f'n{number}', line.strip())}\n" for number, line in enumerate(LINES))


@pytest.fixture
def world(world):
    world.write("text", with_lines())
    world.asked = []
    return world


def edits(world, number, new, own):
    """A task that edits one line, looks, and makes a file of its own."""
    return world.model.task(
        call("edit_file", path="text", old_string=f"line {number}\n", new_string=f"{new}\n"),
        call("shell", command=f"grep -c {new} text && echo {new} > {own}"),
        say(f"{new} is there"),
    )


async def both(world, service):
    """Two tasks at once; each edits the same file."""
    tasks = [service.tasks.start(edits(world, *what), agent="editor") for what in ((1, "one", "f1"), (7, "two", "f2"))]
    outcomes = await asyncio.gather(*tasks)
    for outcome, new in zip(outcomes, ("one", "two"), strict=True):
        assert (outcome.error, outcome.output) == (None, f"{new} is there")
        assert (outcome.changes.state, sorted(each.path for each in outcome.changes.files)[1]) == ("held", "text")
    return [outcome.run_id for outcome in outcomes]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on this machine")
def test_two_tasks_that_edit_the_same_file_lose_nothing(world):
    async def run():
        more = {"approval.expires_seconds": 0}
        async with world.open(approver=None, types=LAYERED, more=more) as service:
            one, two = await both(world, service)
            assert world.read("text") == with_lines() and not (world.workspace / "f1").exists()
            assert "+one\n" in await service.changes.diff(one) and "+two\n" in await service.changes.diff(two)
            assert (await service.changes.apply(one)).error is None
            refused = await service.changes.apply(two)
            assert refused.error.code == "conflict"
            assert [(each.path, each.by) for each in refused.changes.conflicts] == [("text", one)]
            assert world.read("text") == with_lines(n1="one") and not (world.workspace / "f2").exists()
            assert "+two\n" in await service.changes.diff(two)
            merge = await service.changes.merge(two)
            assert (await service.changes.apply_merge(merge)).error is None
            assert world.read("text") == with_lines(n1="one", n7="two")
            assert (await service.undo(two)).error is None
            assert world.read("text") == with_lines(n1="one")
            assert world.read("f1") == "one\n" and not (world.workspace / "f2").exists()

    asyncio.run(run())


def test_a_person_is_asked_about_the_whole_diff_and_about_no_single_call(world):
    def approver(request):
        world.asked.append(request)
        return True

    async def run():
        async with world.open(approver=approver, types=LAYERED) as service:
            outcome = await service.tasks.start(edits(world, 1, "one", "f1"), agent="editor")
            assert outcome.changes.state == "committed"
            return outcome

    asyncio.run(run())
    assert [request.tool for request in world.asked] == ["task"]
    assert "+one\n" in world.asked[0].diff
    assert world.read("text") == with_lines(n1="one")


@pytest.mark.parametrize("engine", ["snapshot", "off"])
def test_where_no_layer_is_possible_no_request_is_sent(world, engine):
    async def run():
        async with world.open(types=LAYERED, more={"changes.engine": engine}) as service:
            outcome = await service.tasks.start(edits(world, 1, "one", "f1"), agent="editor")
            assert outcome.error.code == "bad-usage" and "would need a layer of its own" in outcome.error.message

    asyncio.run(run())
    assert world.model.requests == []
    assert world.read("text") == with_lines()
