"""What MCP clients see of haft's tools, in both eras of the protocol."""

import asyncio

import pytest
from mcp.shared.exceptions import MCPError

from haft import Context, tool


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(readonly=True)
def say(text: str) -> str:
    """Say a text."""
    return text


@tool
def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)


def test_tools_are_listed_with_schemas_and_annotations(served, era):
    async def main():
        async with served(era, tools=[add]) as (client, _service):
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"add", "read_file", "shell", "undo", "search_tools"} <= tools.keys()
            assert "call_tool" not in tools
            assert tools["add"].input_schema["required"] == ["a", "b"]
            assert tools["add"].annotations.read_only_hint is True
            assert tools["shell"].annotations.read_only_hint is False
            assert tools["add"].output_schema["properties"]["result"]["type"] == "integer"

    asyncio.run(main())


def test_a_result_stands_in_the_text_and_in_the_structured_content(served, era):
    async def main():
        async with served(era, tools=[add]) as (client, service):
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert result.is_error is False
            assert result.content[0].text == "3"
            run = result.structured_content["run"]
            assert result.structured_content == {"run": run, "status": "done", "output": "3", "result": 3}
            (record,) = await service.runs.find(tool="add")
            assert (record.id, record.who, record.thread) == (run, "agent", "T-test")
            assert record.record["whoKind"] == "agent"

    asyncio.run(main())


def test_an_error_has_its_code_and_hint_in_text_and_structured_content(served, era):
    async def main():
        async with served(era, tools=[fail]) as (client, _service):
            result = await client.call_tool("read_file", {"path": "nothing.txt"})
            assert result.is_error is True
            error = result.structured_content["error"]
            said = "\n".join(block.text for block in result.content)
            assert error["code"] in said and error["message"] in said and result.structured_content["run"] in said
            wrong = await client.call_tool("read_file", {"pth": "x"})
            assert wrong.is_error is True
            assert wrong.structured_content["error"]["code"] == "invalid-arguments"

    asyncio.run(main())


def test_an_unknown_tool_is_an_error_of_the_protocol_that_names_the_near_miss(served, era):
    async def main():
        async with served(era, tools=[add]) as (client, _service):
            with pytest.raises(MCPError) as caught:
                await client.call_tool("ad", {})
            assert caught.value.error.code == -32602
            assert "`add`" in caught.value.error.message

    asyncio.run(main())


def test_only_tools_that_the_options_name_are_offered_and_can_be_called(served, era):
    async def main():
        async with served(era, tools=[add, say], globs=("ad*",)) as (client, _service):
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert "add" in names and not names & {"say", "read_file", "shell"}
            assert (await client.call_tool("add", {"a": 1, "b": 2})).is_error is False
            with pytest.raises(MCPError, match="does not offer"):
                await client.call_tool("say", {"text": "x"})

    asyncio.run(main())


def test_the_read_only_profile_offers_nothing_that_may_change_files(served, era):
    async def main():
        async with served(era, tools=[add, fail], read_only=True) as (client, service):
            tools = (await client.list_tools()).tools
            assert {"add", "read_file"} <= {tool.name for tool in tools}
            assert not {"fail", "shell", "write_file", "undo", "redo"} & {tool.name for tool in tools}
            for name in ("shell", "write_file", "undo"):
                with pytest.raises(MCPError):
                    await client.call_tool(name, {})
            assert await service.runs.find() == []

    asyncio.run(main())


def test_lazy_mode_lists_two_tools_and_reaches_all_of_them(served, era):
    async def main():
        async with served(era, tools=[add], lazy=True) as (client, _service):
            assert [tool.name for tool in (await client.list_tools()).tools] == ["search_tools", "call_tool"]
            found = await client.call_tool("search_tools", {"query": "add two numbers"})
            first = found.structured_content["tools"][0]
            assert first["name"] == "add" and first["inputSchema"]["required"] == ["a", "b"]
            assert "add" in found.content[0].text
            called = await client.call_tool("call_tool", {"name": "add", "arguments": {"a": 20, "b": 22}})
            assert called.content[0].text == "42"
            listed = await client.call_tool("call_tool", {"name": "runs", "arguments": {"tool": "add"}})
            assert [row["run"] for row in listed.structured_content["runs"]] == [called.structured_content["run"]]
            unknown = await client.call_tool("call_tool", {"name": "ad", "arguments": {}})
            assert unknown.is_error and "did you mean `add`?" in unknown.content[0].text

    asyncio.run(main())


def test_changed_files_are_named_and_undone(served, era, places):
    async def main():
        rules = {"permissions": [{"tool": "write_file", "action": "allow"}]}
        async with served(era, settings=rules) as (client, _service):
            result = await client.call_tool("write_file", {"path": "a.txt", "content": "x"})
            assert result.structured_content["changes"]["files"] == [{"path": "a.txt", "type": "create"}]
            assert "a.txt (create)" in "\n".join(block.text for block in result.content)
            undone = await client.call_tool("undo", {})
            assert undone.is_error is False, undone
            assert not (places["workspace"] / "a.txt").exists()
            redone = await client.call_tool("redo", {"run": result.structured_content["run"]})
            assert redone.is_error is False, redone
            assert (places["workspace"] / "a.txt").exists()
            patch = await client.call_tool("diff", {"run": result.structured_content["run"]})
            assert "+x" in patch.content[0].text

    asyncio.run(main())


def test_progress_of_a_tool_reaches_a_client_that_asks_for_it(served, era):
    @tool(readonly=True)
    async def steps(context: Context) -> str:
        """Go step by step."""
        for at in (0, 0.5, 1):
            context.progress(f"at {at}", fraction=at)
        return "done"

    async def main():
        seen = []

        async def heard(progress, total, message):
            seen.append((progress, total, message))

        async with served(era, tools=[steps]) as (client, _service):
            result = await client.call_tool("steps", {}, progress_callback=heard)
            assert result.content[0].text == "done"
            assert [one for one in seen if one[1]] == [(0, 100, "at 0"), (50, 100, "at 0.5"), (100, 100, "at 1")]
            assert [one[0] for one in seen] == sorted({one[0] for one in seen})
            assert (await client.call_tool("steps", {})).content[0].text == "done"

    asyncio.run(main())


def test_cancelling_the_request_cancels_the_run(served, era):
    started = asyncio.Event()

    @tool(readonly=True)
    async def hang() -> None:
        """Never ends."""
        started.set()
        await asyncio.Event().wait()

    async def main():
        async with served(era, tools=[hang]) as (client, service):
            call = asyncio.create_task(client.call_tool("hang", {}))
            await asyncio.wait_for(started.wait(), 10)
            (run,) = service._host.running().live.values()
            call.cancel()
            assert (await asyncio.wait_for(_ended(run), 10)).status == "cancelled"
            assert run.cancelled_by.who == "agent"

    asyncio.run(main())


async def _ended(run):
    return await run
