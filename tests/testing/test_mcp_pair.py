"""The MCP server and client for tests: with each other, with haft as the client, and with haft as the server."""

import asyncio
import os
import sys

import pytest

from haft.contracts import BadUsage
from haft.testing.mcp_pair import McpAnswer, ScriptedMcpServer, connected_client
from haft.testing.reading import scenarios_from
from haft.testing.running import run_scenario

ANSWERS = (
    McpAnswer("add", {"a": 1, "b": 2}, text="3", result={"sum": 3}),
    McpAnswer("add", text="first"),
    McpAnswer("add", text="second"),
    McpAnswer("draw", text="here", content=({"type": "image", "data": "AAAA", "mimeType": "image/png"},)),
    McpAnswer("fail", text="no luck", is_error=True),
)
NOTES = ScriptedMcpServer("notes", ({"name": "add", "description": "Add."},), ANSWERS)


def test_the_client_gets_the_answers_of_the_server(tmp_path):
    async def work():
        async with connected_client(NOTES.write(str(tmp_path))) as client:
            tools = await client.tools()
            calls = [("add", {"a": 1, "b": 2}), ("add", {"a": 9}), ("add", {"a": 9}), ("add", {}), ("draw", {})]
            return tools, [await client.call(*each) for each in (*calls, ("fail", {}))]

    tools, (summed, first, second, again, drawn, failed) = asyncio.run(work())
    assert {name: tool.get("description") for name, tool in tools.items()} == {
        "add": "Add.",
        "draw": None,
        "fail": None,
    }
    assert summed == ANSWERS[0]
    assert [each.text for each in (first, second, again)] == ["first", "second", "second"]
    assert drawn.content == ANSWERS[3].content
    assert (failed.is_error, failed.text) == (True, "no luck")


def test_the_client_calls_the_tools_that_haft_serves(tmp_path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/a.txt").write_text("one\n")
    env = {**os.environ, "HAFT_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "haft", "-w", str(tmp_path / "workspace"), "serve", "mcp"]

    async def work():
        async with connected_client(command, env=env) as client:
            return await client.tools(), await client.call("read_file", {"path": "a.txt"})

    tools, answer = asyncio.run(work())
    assert "read_file" in tools
    assert (answer.text, answer.is_error) == ("one\n", False)


SCENARIO = {
    "tool": "mcp__notes__add",
    "args": {"a": 1, "b": 2},
    "mcp": {"notes": {"calls": [{"tool": "add", "args": {"a": 1, "b": 2}, "text": "3", "result": {"sum": 3}}]}},
    "expect": {"output": "3", "result": {"sum": 3}},
}


def test_a_scenario_has_mcp_servers_of_its_own():
    cases = [{"name": "known"}, {"name": "unknown", "args": {"a": 5}, "expect": {"status": "done"}}]
    passed, failed = (asyncio.run(run_scenario(each)) for each in scenarios_from({**SCENARIO, "cases": cases}))
    assert passed.passed
    assert "the scripted server has no answer for add with the arguments" in failed.outcome["output"]
    assert failed.mismatches[0].path == "expect.status"


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ({"notes": {"answers": []}}, "has no `answers`"),
        ({"notes": {"calls": "add"}}, "must be a list"),
        ({"notes": {"calls": [{"text": "3"}]}}, "must be a text, not None"),
        ({"notes": {"calls": [{"tool": "add", "error": "yes"}]}}, "must be true or false"),
    ],
)
def test_mistakes_in_the_servers_of_a_scenario_are_named(servers, message):
    with pytest.raises(BadUsage, match=message):
        scenarios_from({**SCENARIO, "mcp": servers})
