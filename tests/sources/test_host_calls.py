"""Calls that workers make through their host: of isolated tools, of functions in files, of plugins."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from haft import ApprovalAnswer, Context, ToolService, tool
from haft.contracts import ToolFailed
from haft.sources.python.worker_calls import MOST_AT_ONCE, MOST_REFUSALS, WorkerCalls

sys.path.insert(0, str(Path(__file__).parent))
import nested_tools

every_user = pytest.mark.every_user


@pytest.fixture
def places(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name in "ab":
        (workspace / name).write_text(name)
    return {"workspace": workspace, "home": tmp_path / "home", "installed": False}


def called(places, function, arguments=None, approver=lambda _request: True, more=()):
    async def main():
        made = tool(isolated=True)(function)
        async with ToolService.open(**places, tools=[made, *more], approver=approver) as service:
            return await asyncio.wait_for(service.call(made.spec.name, arguments or {}), 60)

    return asyncio.run(main())


@every_user
def test_an_isolated_function_calls_a_tool_and_gets_its_outcome(places):
    outcome = called(places, nested_tools.looks, {"path": "a"})
    assert outcome.error is None
    assert outcome.result == {"parent": outcome.run_id, "run": outcome.run_id, "output": "a", "status": "done"}


def test_an_asynchronous_one_makes_several_at_once(places):
    assert called(places, nested_tools.looks_at_both).result == ["a", "b"]


def test_so_does_a_thread_of_it_and_its_standard_input_stays_empty(places):
    assert called(places, nested_tools.from_a_thread).result == "a"


def test_what_a_worker_asks_for_is_decided_like_any_call(places):
    asked = []

    def approver(request):
        asked.append((request.tool, request.chain_tools, len(request.chain)))
        return request.tool == "is_refused"

    outcome = called(places, nested_tools.is_refused, approver=approver)
    assert outcome.result == ["rejected", "unknown-tool"]
    assert asked == [("is_refused", (), 0), ("write_file", ("is_refused",), 1)]
    assert (places["workspace"] / "a").read_text() == "a"


def test_values_of_the_wrong_kind_are_refused_as_in_the_host(places):
    by_name, arguments = called(places, nested_tools.calls_wrongly).result
    assert by_name == "the name of a tool must be a text, not 5"
    assert arguments == "`arguments` must be a dict of names and values, not a `str`"


FUNCTIONS = '''
from haft import Context, tool


@tool
def count(context: Context) -> int:
    """Count the entries."""
    return len(context.call("list_directory", {"path": "."}).output.splitlines())
'''

PLUGIN = """
class Plugin:
    def get_tool_schemas(self, state):
        schema = {"type": "object", "properties": {"tool": {"type": "string"}, "path": {"type": "string"}}}
        return [{"name": "through", "description": "Call a tool.", "parameters": schema}]

    async def execute_tool(self, name, arguments, state, context):
        arguments = dict(arguments)
        given = {"path": arguments["path"], "content": "x"} if "path" in arguments else {"tool": "none"}
        outcome = await context.call(arguments["tool"], given)
        return {"status": outcome.status, "code": outcome.error and outcome.error.code, "parent": outcome.parent}
"""


def test_functions_of_a_file_and_a_plugin_in_its_session_call_tools(places):
    root = places["workspace"]
    (root / "functions.py").write_text(FUNCTIONS)
    (root / "plugin.py").write_text(PLUGIN)
    settings = {"plugins": [f"python:{root}/functions.py", f"path:{root}/plugin.py"]}

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True, settings=settings) as service:
            counted = await service.call("count")
            assert (counted.error, counted.result) == (None, 4)
            through = await service.call("through", {"tool": "write_file", "path": "new"})
            assert through.result == {"status": "done", "code": None, "parent": through.run_id}
            assert (root / "new").read_text() == "x"
            again = await service.call("through", {"tool": "through"}, timeout=20)
            assert again.result["code"] == "deadlock"
            assert (await service.undo(through.run_id)).ok
            assert not (root / "new").exists()

    asyncio.run(asyncio.wait_for(main(), 60))


SEEN = ["1", "a\nb\nmine\n1", "2\n", "12\n", "3"]
MADE = {"a": "a", "b": "b", "mine": "12\n4", "theirs": "2\n", "made/by_builtin": "3"}


def files(root):
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


@every_user
def test_calls_in_a_layer_see_it_and_are_seen_in_it_and_reach_the_workspace_with_it(places):
    root = places["workspace"]
    (root / "gone").write_text("0")
    seen = []

    def approver(request):
        seen.append(sorted(files(root)))
        return True

    async def main():
        made = tool(isolated=True)(nested_tools.works)
        async with ToolService.open(**places, tools=[made], approver=approver) as service:
            before = files(root)
            outcome = await asyncio.wait_for(service.call("works"), 60)
            assert outcome.error is None
            assert outcome.result == {"seen": SEEN, "listed": ["a", "b", "made", "mine", "theirs"]}
            assert seen == [["a", "b", "gone"]] * len(seen), "nothing reached the workspace before"
            assert files(root) == MADE
            children = {run.tool: run.outcome["changes"] for run in service.runs(parent=outcome.run_id)}
            assert {each["path"] for each in children["shell"]["files"]} == {"made", "mine", "theirs"}
            assert {changes["state"] for changes in children.values()} == {"none", "committed"}
            assert (await service.undo(outcome.run_id)).ok
            assert files(root) == before
            states = {run.outcome["changes"]["state"] for run in service.runs(parent=outcome.run_id)}
            assert states == {"none", "undone"}
            assert (await service.redo(outcome.run_id)).ok
            assert files(root) == MADE
            builtin = next(run for run in service.runs(parent=outcome.run_id) if run.tool == "write_file")
            assert (await service.undo(builtin.id)).ok
            assert "made/by_builtin" not in files(root)

    asyncio.run(main())


@every_user
def test_calls_that_only_read_see_the_layer_too(places):
    def only_the_first(request):
        return request.tool == "is_read"

    outcome = called(places, nested_tools.is_read, approver=only_the_first)
    shell, search, found, listed, read = outcome.result
    assert shell == "a word\na\nb\nnew"
    assert "new/mine" in search and "a word" in search
    assert found == "new/mine" and "mine" in listed and read == "a word"


@every_user
def test_cancelling_a_layered_parent_leaves_nothing_of_its_calls(places):
    root = places["workspace"]
    (root / "gone").write_text("0")
    began = asyncio.Event()

    @tool(readonly=True)
    async def waits() -> None:
        began.set()
        await asyncio.Event().wait()

    async def main():
        made = tool(isolated=True)(nested_tools.works_and_waits)
        async with ToolService.open(**places, tools=[made, waits], approver=lambda _request: True) as service:
            before = files(root)
            run = service.call("works_and_waits")
            await asyncio.wait_for(began.wait(), 60)
            run.cancel()
            assert (await run).status == "cancelled"
            assert files(root) == before
            states = {one.outcome["changes"]["state"] for one in service.runs(parent=run.id)}
            assert states == {"none", "discarded"}

    asyncio.run(main())


def test_what_a_child_of_a_layer_did_before_it_was_stopped_does_not_count(places):
    outcome = called(places, nested_tools.child_fails)
    assert outcome.result == ["timed-out", "discarded", "tool-failed", "a", "b", "whole"]
    assert sorted(files(places["workspace"])) == ["a", "b", "whole"]


@every_user
def test_layered_calls_nest(places):
    outcome = called(places, nested_tools.calls_deeper, {"depth": 3})
    assert outcome.result == ["a", "b", *(f"down{n}" for n in range(4))]
    expected = {"a", "b", *(f"{word}{n}" for word in ("up", "down") for n in range(4))}
    assert set(files(places["workspace"])) == expected


def test_a_trial_holds_what_the_calls_inside_it_changed(places):
    root = places["workspace"]
    (root / "gone").write_text("0")

    async def main():
        made = tool(isolated=True)(nested_tools.works)
        async with ToolService.open(**places, tools=[made], approver=lambda request: request.diff is None) as service:
            before = files(root)
            outcome = await asyncio.wait_for(service.call("works", trial=True), 60)
            assert (outcome.status, outcome.changes.state) == ("rejected-by-user", "discarded")
            assert files(root) == before

    asyncio.run(main())


@every_user
def test_a_call_that_names_a_command_as_its_parent_lands_in_the_layer_of_that(places):
    root = places["workspace"]

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True) as service:
            run = service.call("shell", {"command": "until test -e a.new; do sleep 0.05; done; cat a.new > b"})
            async for event in run:
                if event.status == "in-progress":
                    break
            child = await service.call("write_file", {"path": "a.new", "content": "x"}, parent=run.id)
            assert child.changes.state == "held" and not (root / "a.new").exists()
            assert (await run).ok
            assert files(root) == {"a": "a", "b": "x", "a.new": "x"}
            assert (await service.undo(run.id)).ok
            assert files(root) == {"a": "a", "b": "b"}

    asyncio.run(asyncio.wait_for(main(), 60))


@every_user
@pytest.mark.parametrize("name", ["has_it_written", "has_it_had_written"])
@pytest.mark.parametrize("again", ["", "not granted"])
def test_a_grant_of_a_call_opens_nothing_for_its_caller(places, name, again):
    def approver(request):
        return ApprovalAnswer(True, grants={"write": [".vscode"]}) if request.tool == "shell" else True

    inner = tool(isolated=True)(nested_tools.has_it_written)
    more = [] if name == "has_it_written" else [inner]
    outcome = called(places, getattr(nested_tools, name), {"again": again}, approver, more)
    written = places["workspace"] / ".vscode" / "tasks.json"
    if again:
        assert not written.exists()
        failed = outcome.error.code if name == "has_it_written" else outcome.result
        assert failed in ("sandbox-denied", "error")
    else:
        assert (outcome.status, outcome.changes.state) == ("done", "committed")
        assert written.read_text() == "granted\n"


@pytest.mark.parametrize("number", ["Infinity", "null", '"1"', "1.5"])
def test_a_call_with_no_number_is_no_word_of_ours_and_the_worker_is_heard_all_the_same(places, number):
    body = f'{{"call": {{"id": {number}, "tool": "read_file", "arguments": {{}}, "timeout": null}}}}'
    outcome = called(places, nested_tools.forges, {"body": body})
    assert outcome.error.message == "the worker process sent a message that cannot be understood"


def test_a_worker_that_does_not_read_its_outcomes_makes_no_more_calls_than_are_kept_for_it():
    made, sent = [], []

    class Asked:
        async def call(self, name, arguments, *, timeout):
            made.append(name)
            raise ToolFailed("no")

    async def main():
        calls = WorkerCalls()

        def send(data):
            sent.append((data, asyncio.get_running_loop().create_future()))
            return sent[-1][1]

        async def ask(count):
            for number in range(count):
                calls.make({"id": number, "tool": "read_file", "arguments": {}, "timeout": None}, Asked())
            for _ in range(5):
                await asyncio.sleep(0)

        calls.begun(send)
        await ask(5_000)
        await ask(5_000)
        assert (len(made), len(sent)) == (MOST_AT_ONCE, MOST_AT_ONCE + MOST_REFUSALS)
        for _data, taken in sent:
            taken.set_result(None)
        await ask(0)
        await ask(1)
        assert len(made) == MOST_AT_ONCE + 1
        sent[-1][1].set_result(None)

    asyncio.run(main())


def test_what_fails_in_the_host_is_told_to_the_worker_that_waits_for_it():
    class Broken:
        async def call(self, name, arguments, *, timeout):
            raise RuntimeError("broken")

    async def main():
        calls, told = WorkerCalls(), asyncio.get_running_loop().create_future()

        async def send(data):
            told.set_result(json.loads(data))

        calls.begun(send)
        calls.make({"id": 7, "tool": "read_file", "arguments": {}, "timeout": None}, Broken())
        return await told

    said = asyncio.run(asyncio.wait_for(main(), 20))
    assert (said["id"], said["failure"]) == (7, "`read_file` was not called: RuntimeError('broken')")


@every_user
def test_built_in_tools_change_files_in_a_layer_that_were_there_before(places):
    outcome = called(places, nested_tools.has_files_changed)
    assert outcome.result == ["done", "done", "written", "edited"]
    assert files(places["workspace"]) == {"a": "written", "b": "edited"}


@every_user
@pytest.mark.parametrize("first", [(0,), (0, 1), (0, 2), (0, 1, 2)], ids=str)
def test_a_caller_is_undone_and_redone_whole_whichever_of_its_calls_were_undone_before(places, first):
    root = places["workspace"]
    tools = [tool(isolated=True)(each) for each in (nested_tools.inner, nested_tools.outer)]

    async def main():
        async with ToolService.open(**places, tools=tools, approver=lambda _request: True) as service:
            before = files(root)
            outcome = await service.call("outer")
            after = files(root)
            assert after == {"a": "innerinnermost\n", "b": "b", "c": "inner", "own": "outer"}
            for number in first:
                undone = await service.undo(outcome.result[number])
                assert undone.ok, undone.error
            for _ in range(2):
                undone = await service.undo(outcome.run_id)
                assert undone.ok, undone.error
                assert files(root) == before
                redone = await service.redo(outcome.run_id)
                assert redone.ok, redone.error
                assert files(root) == after

    asyncio.run(asyncio.wait_for(main(), 60))


EACH_OTHER = """
import os

class Plugin:
    def get_tool_schemas(self, state):
        schema = {"type": "object", "properties": {"tool": {"type": "string"}}}
        return [{"name": "NAME", "description": "Call a tool.", "parameters": schema}]

    def execute_tool(self, name, arguments, state, context):
        if not arguments.get("tool"):
            return "called"
        context.progress("answering")
        while not os.path.exists("go"):
            pass
        outcome = context.call(arguments["tool"], {})
        return outcome.status if outcome.error is None else outcome.error.code
"""


def test_two_plugins_that_call_each_other_at_once_do_not_wait_for_each_other(places, tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text(EACH_OTHER.replace("NAME", name))
    settings = {"plugins": [f"path:{tmp_path}/{name}/{name}.py" for name in ("one", "other")]}

    async def answering(run):
        async for event in run:
            if event.type in ("progress", "outcome"):
                return

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True, settings=settings) as service:
            runs = [service.call("one", {"tool": "other"}), service.call("other", {"tool": "one"})]
            await asyncio.gather(*map(answering, runs))
            (places["workspace"] / "go").touch()
            outcomes = [await run for run in runs]
            assert [each.error for each in outcomes] == [None, None]
            assert sorted(each.output for each in outcomes) == ["deadlock", "done"]

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("plugin_first", [True, False])
def test_a_plugin_and_the_holder_of_a_lock_do_not_wait_for_each_other(places, tmp_path, plugin_first):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "one.py").write_text(EACH_OTHER.replace("NAME", "one"))
    begun, may_call = asyncio.Event(), asyncio.Event()

    @tool(writes=["path"], reads=[])
    async def holder(context: Context, path: str = "a") -> str:
        """Call the plugin."""
        begun.set()
        await may_call.wait()
        outcome = await context.call("one", {})
        return outcome.status if outcome.error is None else outcome.error.code

    @tool(writes=["path"], reads=[])
    def writes_a(path: str = "a") -> None:
        """Wait for the lock."""

    async def until(run, is_so):
        async for event in run:
            if is_so(event):
                return

    async def main():
        settings = {"plugins": [f"path:{tmp_path}/one/one.py"]}
        options = {"tools": [holder, writes_a], "approver": lambda _request: True, "settings": settings}
        async with ToolService.open(**places, **options) as service:
            runs = [service.call("holder"), service.call("one", {"tool": "writes_a"})]
            await begun.wait()
            await until(runs[1], lambda event: event.type == "progress")
            steps = [(places["workspace"] / "go").touch, may_call.set]
            steps[0 if plugin_first else 1]()
            await until(runs[1 if plugin_first else 0], lambda event: event.type == "child")
            steps[1 if plugin_first else 0]()
            outcomes = [await run for run in runs]
            assert [each.error for each in outcomes] == [None, None]
            assert sorted(each.output for each in outcomes) == ["deadlock", "done"]

    asyncio.run(asyncio.wait_for(main(), 60))
