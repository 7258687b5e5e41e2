"""The tool `batch` of haft's MCP server, with a real client."""

import asyncio

from haft import tool

RULES = {"permissions": [{"tool": "write_file", "action": "allow"}, {"tool": "edit_file", "action": "allow"}]}
CALLS = [
    {"id": "w", "tool": "write_file", "args": {"path": "a", "content": "x"}},
    {"id": "r", "tool": "read_file", "args": {"path": "a"}},
    {"id": "none", "tool": "read_fil", "args": {"path": "a"}},
    {"id": "late", "tool": "read_file", "args": {"path": "a"}, "after": ["none"]},
]


def test_a_batch_gives_the_results_of_its_calls_in_their_order(served, era, places):
    async def main():
        async with served(era, settings=RULES) as (client, _service):
            result = await client.call_tool("batch", {"calls": CALLS})
            assert result.is_error is True, "one of its calls failed"
            outcomes = result.structured_content["outcomes"]
            assert [each["id"] for each in outcomes] == ["w", "r", "none", "late"]
            assert [each["status"] for each in outcomes] == ["done", "done", "error", "cancelled"]
            assert outcomes[1]["output"] == "x"
            assert (outcomes[2]["error"]["code"], outcomes[2]["error"]["hint"]) == (
                "unknown-tool",
                "did you mean `read_file`?",
            )
            assert outcomes[3]["error"]["code"] == "dependency-failed"
            assert "[call r: read_file, done]" in [block.text for block in result.content]
            undone = await client.call_tool("undo", {"run": result.structured_content["batch"]})
            assert undone.is_error is not True
        assert list(places["workspace"].iterdir()) == []

    asyncio.run(main())


def test_a_tool_that_the_server_does_not_offer_cannot_be_called_in_a_batch(served, places):
    async def main():
        async with served("legacy", settings=RULES, read_only=True) as (client, _service):
            result = await client.call_tool("batch", {"calls": CALLS[:2]})
            assert [each["error"]["code"] for each in result.structured_content["outcomes"]] == [
                "unknown-tool",
                "tool-failed",
            ]
        assert list(places["workspace"].iterdir()) == []

    asyncio.run(main())


def test_the_tools_of_haft_itself_cannot_be_called_in_a_batch(served):
    async def main():
        async with served("legacy", settings=RULES) as (client, _service):
            calls = [{"tool": "undo"}, {"tool": "batch", "args": {"calls": CALLS}}, {"tool": "runs"}]
            result = await client.call_tool("batch", {"calls": calls})
            for tool_call, each in zip(calls, result.structured_content["outcomes"], strict=True):
                assert each["error"]["code"] == "bad-usage"
                assert each["error"]["message"] == f"`{tool_call['tool']}` cannot be called in a batch"
                assert each["error"]["hint"] == "call it by itself"

    asyncio.run(main())


def test_a_wrong_list_is_an_error_and_nothing_runs(served):
    async def main():
        async with served("legacy", settings=RULES) as (client, service):
            result = await client.call_tool("batch", {"calls": [{**CALLS[0], "after": ["r"]}, CALLS[1]]})
            assert result.is_error is True and "which comes later" in result.content[0].text
            assert service.runs() == []

    asyncio.run(main())


def test_a_batch_that_waits_for_a_person_can_be_waited_for(served):
    async def main():
        settings = {"approval.expires_seconds": 60}
        async with served("legacy", settings=settings) as (client, service):
            result = await client.call_tool("batch", {"calls": CALLS[:2], "seconds": 0.5})
            waiting = result.structured_content["outcomes"][0]
            assert waiting["status"] == "blocked-on-user" and "call `wait` with this run" in waiting["message"]
            await service.approve(result.structured_content["batch"])
            ended = await client.call_tool("wait", {"run": result.structured_content["outcomes"][1]["run"]})
            assert ended.content[0].text == "x"

    asyncio.run(main())


def test_a_client_that_gives_up_cancels_the_batch(served):
    entered = asyncio.Event()

    @tool(readonly=True)
    async def stay() -> str:
        """Stay."""
        entered.set()
        await asyncio.Event().wait()
        return ""

    async def main():
        async with served("legacy", tools=[stay]) as (client, service):
            calling = asyncio.create_task(client.call_tool("batch", {"calls": [{"tool": "stay"}] * 2}))
            await entered.wait()
            runs = [*service._host.pipeline.live.values()]
            calling.cancel()
            outcomes = [await run for run in runs]
            assert [outcome.status for outcome in outcomes] == ["cancelled", "cancelled"]

    asyncio.run(main())


def test_a_batch_is_cancelled_by_its_own_client_only(served):
    async def main():
        async with served("legacy", settings={"approval.expires_seconds": 60}) as (client, service):
            result = await client.call_tool("batch", {"calls": CALLS[:2], "seconds": 0.5})
            name = result.structured_content["batch"]
            async with served("legacy", service=service, caller="other") as (other, _service):
                refused = await other.call_tool("cancel", {"run": name})
                assert refused.is_error is True and "you have no batch" in refused.content[0].text
            stopped = await client.call_tool("cancel", {"run": name})
            assert stopped.structured_content == {"run": name, "cancelled": True}

    asyncio.run(main())
