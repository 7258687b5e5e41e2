"""Calls that wait for each other: who waits, who is told, and who is refused."""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from haft import Context, ToolService, tool
from haft.contracts import Conflict


@pytest.fixture
def places(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return {"workspace": workspace, "home": tmp_path / "home", "installed": False}


async def yes(_request):
    return True


class Gates:
    """A tool that declares what it writes, and works until its gate opens."""

    def __init__(self):
        self.begun = []
        self.news = asyncio.Condition()
        self.opened = set()

    def tool(self):
        @tool(writes=["paths"], reads=[])
        async def works(name: str, paths: list[str], calls: list[dict] | None = None, *, context: Context) -> list[str]:
            """Begin, wait for the gate, make calls, end."""
            await self._say(self.begun.append, name)
            async with self.news:
                await self.news.wait_for(lambda: name in self.opened)
            outcomes = await asyncio.gather(*(context.call("works", each) for each in calls or ()))
            return [each.error.code if each.error else each.status for each in outcomes]

        return works

    async def _say(self, change, name):
        async with self.news:
            change(name)
            self.news.notify_all()

    async def open(self, *names):
        for name in names:
            await self._say(self.opened.add, name)

    async def has_begun(self, name):
        async with self.news:
            await self.news.wait_for(lambda: name in self.begun)


async def waits_for(run):
    """For which run a run says that it waits."""
    async for event in run:
        if event.type == "status" and event.facts.get("waitsFor"):
            return event.facts
    raise AssertionError("it does not wait")


def test_calls_that_write_one_path_run_one_after_another_and_the_others_at_once(places):
    async def main():
        gates = Gates()
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes) as service:
            first = service.call("works", {"name": "first", "paths": ["a"]})
            await gates.has_begun("first")
            second = service.call("works", {"name": "second", "paths": ["a/below", "b"]})
            assert await waits_for(second) == {"waitsFor": first.id}
            third = service.call("works", {"name": "third", "paths": ["c"]})
            await gates.has_begun("third")
            assert second.status == "queued" and gates.begun == ["first", "third"]
            await gates.open("first", "second", "third")
            assert [(await each).status for each in (first, second, third)] == ["done"] * 3

    asyncio.run(main())


def test_a_waiting_call_can_be_cancelled_and_the_next_one_goes_on(places):
    async def main():
        gates = Gates()
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes) as service:
            first = service.call("works", {"name": "first", "paths": ["a"]})
            await gates.has_begun("first")
            second = service.call("works", {"name": "second", "paths": ["a", "b"]})
            await waits_for(second)
            third = service.call("works", {"name": "third", "paths": ["b"]})
            assert await waits_for(third) == {"waitsFor": second.id}
            second.cancel()
            assert (await second).status == "cancelled"
            await gates.has_begun("third")
            await gates.open("first", "third")
            assert [(await each).status for each in (first, third)] == ["done", "done"]

    asyncio.run(main())


def test_of_two_parents_whose_children_want_each_others_paths_one_child_is_refused(places):
    async def main():
        gates = Gates()
        await gates.open("c1", "c2")
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes) as service:
            parents = []
            for name, own, other, child in (("p1", "a", "b", "c1"), ("p2", "b", "a", "c2")):
                calls = [{"name": child, "paths": [other]}]
                parents.append(service.call("works", {"name": name, "paths": [own], "calls": calls}))
                await gates.has_begun(name)
            await gates.open("p1", "p2")
            results = [(await each).result for each in parents]
            assert sorted(results) == [["deadlock"], ["done"]]
            (refused,) = [run for run in service.runs() if run.outcome["error"]]
            assert refused.outcome["error"]["retryable"] and refused.outcome["changes"]["files"] == []

    asyncio.run(main())


def test_two_children_that_widen_their_parents_claim_take_turns_and_nobody_comes_between(places):
    async def main():
        gates = Gates()
        await gates.open("c1", "c2")
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes) as service:
            calls = [{"name": name, "paths": ["a", "b"]} for name in ("c1", "c2")]
            parent = service.call("works", {"name": "parent", "paths": ["a"], "calls": calls})
            await gates.has_begun("parent")
            other = service.call("works", {"name": "other", "paths": ["a", "b"]})
            await waits_for(other)
            await gates.open("parent", "other")
            assert (await parent).result == ["done", "done"]
            assert (await other).status == "done"
            assert gates.begun == ["parent", "c1", "c2", "other"]

    asyncio.run(main())


def test_a_child_that_waits_for_a_lock_leaves_its_parents_place_to_others(places):
    async def main():
        gates = Gates()
        settings = {"limits.max_concurrent": 2}
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes, settings=settings) as service:
            holder = service.call("works", {"name": "holder", "paths": ["a"]})
            await gates.has_begun("holder")
            calls = [{"name": "child", "paths": ["a"]}]
            parent = service.call("works", {"name": "parent", "paths": [], "calls": calls})
            await gates.open("parent", "child")
            other = service.call("works", {"name": "other", "paths": ["c"]})
            await gates.has_begun("other")  # Both places would be taken otherwise.
            await gates.open("holder", "other")
            assert [(await each).status for each in (holder, parent, other)] == ["done"] * 3

    asyncio.run(main())


def test_who_waits_is_told_that_a_call_of_the_holder_waits_for_a_person(places):
    async def main():
        asked, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def person(request):
            if request.tool != "write_file":
                return True
            asked.set()
            return await answer

        @tool(writes=["path"], reads=[])
        async def delegates(path: str, context: Context) -> str:
            """Have another file written."""
            return (await context.call("write_file", {"path": "other", "content": "x"})).status

        gates = Gates()
        async with ToolService.open(**places, tools=[delegates, gates.tool()], approver=person) as service:
            holder = service.call("delegates", {"path": "a"})
            await asked.wait()
            waiting = service.call("works", {"name": "waiting", "paths": ["a"]})
            assert await waits_for(waiting) == {"waitsFor": holder.id, "blockedOn": "person"}
            answer.set_result(True)
            await gates.open("waiting")
            assert [(await each).status for each in (holder, waiting)] == ["done", "done"]

    asyncio.run(main())


@pytest.mark.parametrize(("engine", "flush"), [("snapshot", 2), ("auto", 0)])
def test_undo_and_apply_do_not_wait_for_a_call_that_waits_for_a_person(places, engine, flush):
    settings = {"changes.engine": engine, "changes.flush_seconds": flush}

    async def main():
        asked, answer = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def person(request):
            if request.arguments.get("path") != "asked":
                return True
            asked.set()
            return await answer

        @tool
        async def delegates(context: Context) -> str:
            """Have a file written."""
            return (await context.call("write_file", {"path": "asked", "content": "x"})).status

        async with (
            ToolService.open(**places, tools=[delegates], approver=person, settings=settings) as service,
            ToolService.open(**places, approver=yes, settings=settings) as other,
        ):
            done = await other.call("write_file", {"path": "a", "content": "1"})
            async with ToolService.open(**places, settings={"approval.expires_seconds": 0}) as nobody:
                tried = await nobody.call("write_file", {"path": "b", "content": "1"}, trial=True)
            holder = service.call("delegates")
            await asked.wait()
            waiting = other.call("shell", {"command": "echo 2 > c"})
            if engine == "snapshot":
                facts = await waits_for(waiting)
                assert facts == {"waitsFor": holder.id, "blockedOn": "person"}
            else:
                await waiting  # It is published: the call that waits for a person does not see it.
            for command in (other.undo(done.run_id), other.apply(tried.run_id)):
                refused = await command
                assert refused.error.code == "conflict" and refused.error.retryable
                assert f"{holder.id} has the workspace, and waits for a person" in refused.error.message
            with pytest.raises(Conflict, match=f"{holder.id} has the workspace"):
                await asyncio.to_thread(other.look_ahead, "undo", done.run_id)
            answer.set_result(True)
            assert [(await each).status for each in (holder, waiting)] == ["done", "done"]
            assert (await other.undo(done.run_id)).ok and (await other.apply(tried.run_id)).ok

    asyncio.run(main())
    assert sorted(path.name for path in places["workspace"].iterdir()) == ["asked", "b", "c"]


def test_a_call_that_too_many_wait_before_ends_busy_at_once(places):
    async def main():
        gates = Gates()
        settings = {"limits.max_queued": 2, "limits.max_concurrent": 1}
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes, settings=settings) as service:
            first = service.call("works", {"name": "first", "paths": ["a"]})
            await gates.has_begun("first")
            waits_for_lock = service.call("works", {"name": "second", "paths": ["a"]})
            await waits_for(waits_for_lock)
            waits_for_place = service.call("works", {"name": "third", "paths": ["b"]})
            refused = await service.call("works", {"name": "fourth", "paths": ["c"]})
            assert refused.error.code == "busy" and refused.error.retryable
            assert "`limits.max_queued` = 2" in refused.error.message
            await gates.open("first", "second", "third")
            assert [(await each).status for each in (first, waits_for_lock, waits_for_place)] == ["done"] * 3
            await gates.open("fifth")
            assert (await service.call("works", {"name": "fifth", "paths": ["c"]})).status == "done"

    asyncio.run(main())


def test_two_services_on_one_workspace_wait_for_each_other(places):
    async def main():
        gates = Gates()
        async with contextlib.AsyncExitStack() as stack:
            opened = [
                await stack.enter_async_context(ToolService.open(**places, tools=[gates.tool()], approver=yes))
                for _ in range(2)
            ]
            first = opened[0].call("works", {"name": "first", "paths": ["a"]})
            await gates.has_begun("first")
            second = opened[1].call("works", {"name": "second", "paths": ["a"]})
            assert await waits_for(second) == {"waitsFor": first.id}
            await gates.open("first", "second")
            assert [(await each).status for each in (first, second)] == ["done", "done"]
            assert gates.begun == ["first", "second"]

    asyncio.run(main())


@pytest.fixture
def host(places):
    """Starts another host, which makes one call; returns its process, what it says first, and the id of its run."""
    started = []

    def start(command):
        program = [sys.executable, str(Path(__file__).with_name("writing_process.py"))]
        words = [*program, str(places["workspace"]), str(places["home"]), command]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, *process.stdout.readline().split()

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_locks_of_a_killed_host_are_free_and_nothing_is_half_done(places, host):
    (places["workspace"] / "a").write_text("old\n")

    async def main():
        process, said, holder = await asyncio.to_thread(host, "echo half > a; echo begun; sleep 600")
        assert said == "begun"
        async with ToolService.open(**places, approver=yes) as service:
            waiting = service.call("shell", {"command": "cat a > b; echo new >> a"})
            assert await waits_for(waiting) == {"waitsFor": holder}
            process.kill()
            assert (await waiting).status == "done"
        async with ToolService.open(**places) as service:  # It finishes the records of dead hosts.
            assert service.run(holder).outcome["error"]["code"] == "interrupted"

    asyncio.run(main())
    assert (places["workspace"] / "a").read_text() == "old\nnew\n"
    assert (places["workspace"] / "b").read_text() == "old\n"


def test_a_host_that_is_killed_while_it_waits_delays_nobody(places, host):
    async def main():
        gates = Gates()
        async with ToolService.open(**places, tools=[gates.tool()], approver=yes) as service:
            first = service.call("works", {"name": "first", "paths": ["a"]})
            await gates.has_begun("first")
            process, said, queued = await asyncio.to_thread(host, "echo half > a")
            assert said == "waits"
            last = service.call("works", {"name": "last", "paths": ["a"]})
            assert (await waits_for(last))["waitsFor"] in (first.id, queued)
            process.kill()
            await gates.open("first", "last")
            assert [(await each).status for each in (first, last)] == ["done", "done"]

    asyncio.run(main())
    assert not (places["workspace"] / "a").exists()
