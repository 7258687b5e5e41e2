"""Calls that workers make through their host: of isolated tools, of functions in files, of plugins."""

import asyncio
import sys
from pathlib import Path

import pytest

from haft import ToolService, tool

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
