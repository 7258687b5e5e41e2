"""Calls inside calls: places, clocks, people, endings, and what becomes of the changes."""

import asyncio
import os
import threading

import pytest

from haft import Context, ToolService, tool
from haft.contracts import BadUsage
from haft.schedule import Admission, Slot


@pytest.fixture
def places(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return {"workspace": workspace, "home": tmp_path / "home"}


async def yes(_request):
    return True


def configured(places, text):
    (places["workspace"] / "haft.toml").write_text(text)
    os.environ["HAFT_TRUST"] = "1"
    return places


def limited(places, monkeypatch, **limits):
    for name, value in limits.items():
        monkeypatch.setenv(f"HAFT_LIMITS_{name.upper()}", str(value))
    return places


def write(path):
    return "write_file", {"path": path, "content": path}


@tool
async def parent(path: str, context: Context) -> str:
    """Have a file written by another tool."""
    outcome = await context.call(*write(path))
    assert outcome.parent == context.run
    return outcome.status


@tool
def sync_parent(path: str, context: Context) -> str:
    """The same, in a thread."""
    return context.call(*write(path)).status


def test_ten_parents_with_a_child_each_all_end_in_a_host_with_few_places(places, monkeypatch):
    limited(places, monkeypatch, max_concurrent=3, max_seconds=20)

    async def main():
        async with ToolService.open(**places, tools=[parent, sync_parent], approver=yes) as service:
            names = ["parent", "sync_parent"] * 5
            outcomes = await asyncio.gather(*(service.call(name, {"path": f"f{n}"}) for n, name in enumerate(names)))
            assert [(one.status, one.result) for one in outcomes] == [("done", "done")] * 10

    asyncio.run(main())
    assert sorted(os.listdir(places["workspace"])) == sorted(f"f{n}" for n in range(10))


def test_ten_parents_that_name_themselves_end_too(places):
    services = []

    @tool
    async def names_itself(path: str, context: Context) -> str:
        outcome = await services[0].call(*write(path), parent=context.run)
        return outcome.status

    async def main():
        async with ToolService.open(**places, tools=[names_itself], approver=yes) as service:
            services.append(service)
            calls = [service.call("names_itself", {"path": f"f{n}"}, timeout=20) for n in range(10)]
            assert [(await one).result for one in calls] == ["done"] * 10

    asyncio.run(main())


def test_a_pair_ends_where_the_parent_has_the_workspace_alone(places, monkeypatch):
    monkeypatch.setenv("HAFT_CHANGES_ENGINE", "snapshot")

    @tool
    async def around(context: Context) -> str:
        root = places["workspace"]
        (root / "before").write_text("1")
        outcome = await context.call("shell", {"command": "cat before; echo 2 > between; rm gone"})
        (root / "after").write_text((root / "between").read_text())
        return f"{outcome.status} {outcome.output}"

    async def main():
        root = places["workspace"]
        (root / "gone").write_text("0")
        async with ToolService.open(**places, tools=[around], approver=yes) as service:
            outcome = await service.call("around", timeout=30)
            assert (outcome.error, outcome.result) == (None, "done 1")
            assert sorted(os.listdir(root)) == ["after", "before", "between"]
            (child,) = service.runs(parent=outcome.run_id)
            assert (child.parent, child.who, child.thread) == (outcome.run_id, outcome.who, outcome.thread)
            files = {each["path"]: each["type"] for each in child.outcome["changes"]["files"]}
            assert files == {"between": "create", "gone": "delete"}
            assert {each.path for each in outcome.changes.files} == {"before", "after"}
            assert (await service.undo(outcome.run_id)).ok
            assert [(path.name, path.read_text()) for path in root.iterdir()] == [("gone", "0")]

    asyncio.run(main())


def test_a_parent_that_is_no_live_run_is_refused(places):
    async def main():
        async with ToolService.open(**places) as service:
            ended = await service.call("list_directory", {"path": "."})
            for name in ("r_does_not_exist", ended.run_id):
                with pytest.raises(
                    BadUsage, match=f"`{name}` cannot be the parent of a call: it is not a run of this host"
                ):
                    service.call("list_directory", {"path": "."}, parent=name)

    asyncio.run(main())


def test_a_call_in_a_tool_that_names_no_parent_has_that_one(places):
    services = []

    @tool
    async def asks_nobody() -> str:
        return (await services[0].call(*write("a"))).parent

    @tool
    def waits_in_a_thread() -> str:
        return sync[0].call(*write("b")).wait().parent

    async def main():
        async with ToolService.open(**places, tools=[asks_nobody], approver=yes) as service:
            services.append(service)
            outcome = await service.call("asks_nobody", thread="T-1", who="mia")
            assert outcome.result == outcome.run_id
            (child,) = service.runs(parent=outcome.run_id)
            assert (child.record["thread"], child.record["who"]) == ("T-1", "mia")
            assert (await service.call("list_directory", {"path": "."})).parent is None

    asyncio.run(main())
    sync = []
    with ToolService.open_sync(**places, tools=[waits_in_a_thread], approver=yes) as service:
        sync.append(service)
        outcome = service.call("waits_in_a_thread").wait()
        assert outcome.result == outcome.run_id


def test_a_call_of_a_run_that_made_the_caller_is_refused_before_both_wait(places):
    services = []

    @tool
    async def inner(above: str) -> str:
        return (await services[0].call(*write("a"), parent=above)).status

    @tool
    async def outer(context: Context) -> str:
        return str((await context.call("inner", {"above": context.run})).error.message)

    async def main():
        async with ToolService.open(**places, tools=[inner, outer], approver=yes) as service:
            services.append(service)
            assert "as the parent, or give none" in (await service.call("outer", timeout=20)).result

    asyncio.run(main())


def test_a_tool_that_calls_itself_without_end_is_stopped(places):
    @tool(readonly=True)
    async def again(context: Context) -> str:
        outcome = await context.call("again")
        return outcome.result if outcome.ok else outcome.error.message

    async def main():
        async with ToolService.open(**places, tools=[again]) as service:
            outcome = await service.call("again", timeout=60)
            assert "50 calls deep" in outcome.result

    asyncio.run(main())


def test_who_watches_the_parent_sees_its_children_come_and_go(places):
    async def main():
        async with ToolService.open(**places, tools=[parent], approver=yes) as service:
            run = service.call("parent", {"path": "a"})
            seen = [event.to_json() async for event in run if event.type == "child"]
            (child,) = service.runs(parent=run.id)
            assert [(one["child"], one["tool"], one["became"]) for one in seen] == [
                (child.id, "write_file", "queued"),
                (child.id, "write_file", "done"),
            ]

    asyncio.run(main())


class Person:
    """Answers when told to."""

    def __init__(self):
        self.asked = asyncio.Queue()
        self.requests = []

    async def __call__(self, request):
        answer = asyncio.get_running_loop().create_future()
        self.requests.append(request)
        await self.asked.put((request, answer))
        return await answer


def test_while_a_child_waits_for_a_person_its_parents_place_is_free_and_their_clocks_stand_still(places, monkeypatch):
    limited(places, monkeypatch, max_concurrent=1)

    @tool(readonly=True)
    async def middle(context: Context) -> str:
        return (await context.call(*write("a"))).status

    @tool(readonly=True)
    async def outer(context: Context) -> str:
        return (await context.call("middle")).result

    async def main():
        person = Person()
        async with ToolService.open(**places, tools=[outer, middle], approver=person) as service:
            run = service.call("outer", timeout=1.5)
            request, answer = await person.asked.get()
            assert (request.chain[0], request.chain_tools) == (run.id, ("outer", "middle"))
            # The one place is free; and more time passes than the parent has.
            other = await service.call("list_directory", {"path": "."})
            assert other.ok
            await asyncio.sleep(2)
            assert run.status == "in-progress"
            answer.set_result(True)
            outcome = await run
            assert (outcome.status, outcome.result) == ("done", "done")

    asyncio.run(main())


def test_who_holds_the_workspace_goes_on_although_those_who_wait_for_it_have_all_places(places, monkeypatch):
    limited(places, monkeypatch, max_concurrent=1)
    monkeypatch.setenv("HAFT_CHANGES_ENGINE", "snapshot")

    @tool
    async def holds(context: Context) -> str:
        first = await context.call(*write("asked"))
        second = await context.call(*write("second"))
        return f"{first.status} {second.status}"

    @tool
    async def wants() -> None:
        (places["workspace"] / "wanted").write_text("1")

    async def main():
        person = Person()

        async def approver(request):
            return await person(request) if request.arguments.get("path") == "asked" else True

        async with ToolService.open(**places, tools=[holds, wants], approver=approver) as service:
            run = service.call("holds")
            _request, answer = await person.asked.get()
            other = service.call("wants")
            while other.place is None or not other.place.is_held:
                await asyncio.sleep(0)
            answer.set_result(True)
            assert (await run).result == "done done"
            assert (await other).ok
            third = await service.call("list_directory", {"path": "."})
            assert third.ok

    asyncio.run(asyncio.wait_for(main(), 60))


def test_cancelling_in_the_middle_of_five_takes_back_what_was_committed_below_and_nothing_above(places):
    reached = []

    @tool
    async def level(n: int, context: Context) -> str:
        await context.call(*write(f"f{n}"))
        if n == 5:
            reached[0].set()
            await asyncio.Event().wait()
        outcome = await context.call("level", {"n": n + 1})
        await context.call(*write(f"after{n}"))
        return outcome.status

    async def main():
        reached.append(asyncio.Event())
        async with ToolService.open(**places, tools=[level], approver=yes) as service:
            run = service.call("level", {"n": 1}, timeout=60)
            await reached[0].wait()
            assert sorted(os.listdir(places["workspace"])) == ["f1", "f2", "f3", "f4", "f5"]
            chain = [run.id]
            for _ in range(4):
                chain += [one.id for one in service.runs(parent=chain[-1], tool="level")]
            assert service.cancel(chain[2])
            outcome = await run
            assert (outcome.status, outcome.result) == ("done", "done")
            assert sorted(os.listdir(places["workspace"])) == ["after1", "after2", "f1", "f2"]
            statuses = [service.run(each).status for each in chain]
            assert statuses == ["done", "done", "cancelled", "cancelled", "cancelled"]
            assert any("were undone" in note for note in service.run(chain[2]).outcome["notes"])
            # Undoing the outermost undoes all, also what was made by runs that changed nothing themselves.
            assert (await service.undo(run.id)).ok
            assert os.listdir(places["workspace"]) == []
            assert (await service.redo(run.id)).ok
            assert sorted(os.listdir(places["workspace"])) == ["after1", "after2", "f1", "f2"]

    asyncio.run(main())


def test_children_are_waited_for_where_the_parent_ends_and_cancelled_where_it_fails(places):
    began = []

    @tool(readonly=True)
    async def slow(n: int) -> str:
        began.append(n)
        await asyncio.sleep(0.2 if n == 1 else 3600)
        return "slow"

    @tool(readonly=True)
    async def leaves(n: int, context: Context) -> str:
        child = context.call("slow", {"n": n})
        while n not in began:
            await asyncio.sleep(0)
        if n == 2:
            raise ValueError("no")
        return child.id

    async def main():
        async with ToolService.open(**places, tools=[slow, leaves]) as service:
            one = await service.call("leaves", {"n": 1})
            assert service.run(one.result).status == "done"
            two = await service.call("leaves", {"n": 2})
            assert two.status == "error"
            assert [run.status for run in service.runs(parent=two.run_id)] == ["cancelled"]

    asyncio.run(main())


def test_a_function_in_a_thread_goes_no_further_than_the_call_in_which_it_was_cancelled(places):
    after, ended = [], threading.Event()

    @tool(readonly=True)
    async def slow() -> None:
        await asyncio.Event().wait()

    @tool(readonly=True)
    def waits(context: Context) -> None:
        try:
            context.call("slow")
            after.append(1)
        finally:
            ended.set()

    async def main():
        async with ToolService.open(**places, tools=[slow, waits]) as service:
            outcome = await service.call("waits", timeout=0.2)
            assert outcome.error.code == "timed-out"
            await asyncio.to_thread(ended.wait, 30)
            assert after == []

    asyncio.run(main())


def test_a_deadline_of_the_parent_ends_its_children(places):
    @tool(readonly=True)
    async def slow() -> None:
        await asyncio.sleep(3600)

    @tool(readonly=True)
    async def waits(context: Context) -> None:
        await context.call("slow")

    async def main():
        async with ToolService.open(**places, tools=[slow, waits]) as service:
            outcome = await service.call("waits", timeout=0.2)
            assert outcome.error.code == "timed-out"
            assert [run.status for run in service.runs(parent=outcome.run_id)] == ["cancelled"]

    asyncio.run(main())


def test_a_child_sees_what_its_parent_wrote_through_its_workspace(places):
    @tool
    async def writes(context: Context) -> str:
        context.workspace.replace("a", b"one")
        seen = await context.call("read_file", {"path": "a"})
        edited = await context.call("edit_file", {"path": "a", "old_string": "one", "new_string": "two"})
        with context.workspace.open("a") as file:
            context.workspace.replace("b", file.read())
        return f"{seen.output} {edited.status}"

    async def main():
        root = places["workspace"]
        (root / "a").write_text("zero")
        async with ToolService.open(**places, tools=[writes], approver=yes) as service:
            outcome = await service.call("writes")
            assert (outcome.error, outcome.result) == (None, "one done")
            assert {path.name: path.read_text() for path in root.iterdir()} == {"a": "two", "b": "two"}
            assert {each.path for each in outcome.changes.files} == {"a", "b"}
            assert (await service.undo(outcome.run_id)).ok
            assert {path.name: path.read_text() for path in root.iterdir()} == {"a": "zero"}

    asyncio.run(main())


def test_a_caller_keeps_a_place_when_the_call_that_a_person_answered_is_cancelled_before_it_goes_on():
    async def main():
        admission = Admission(1)
        caller, other, call = Slot(admission), Slot(admission), Slot(admission)
        assert caller.take(None)
        caller.pause()
        assert other.take(None)
        back = asyncio.create_task(caller.resume(None))
        await asyncio.sleep(0)
        back.cancel()
        await asyncio.gather(back, return_exceptions=True)
        assert caller.is_held
        assert call.take(caller)
        for place in (call, caller, other):
            place.release()
        assert (admission.free, admission.waiting) == (1, 0)

    asyncio.run(main())
