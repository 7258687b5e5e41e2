"""haft's own tools for MCP clients: each reaches only the runs of the client that calls it."""

import asyncio

import pytest

from haft import ToolService, tool

RULES = {"permissions": [{"tool": "write_file", "action": "allow"}, {"tool": "flood", "action": "allow"}]}


@tool(readonly=True)
def flood(lines: int) -> str:
    """Write many lines."""
    return "".join(f"line {number} ä\n" for number in range(1, lines + 1))


def test_the_runs_of_another_client_and_of_the_person_do_not_exist(served, places):
    async def main():
        async with served("legacy", settings=RULES) as (mine, service):
            theirs = service.call("write_file", {"path": "theirs.txt", "content": "x"}, who="agent")
            ours = await service.call("write_file", {"path": "person.txt", "content": "x"})
            async with served("legacy", service=service, caller="other") as (other, _service):
                other_run = (await other.call_tool("write_file", {"path": "o.txt", "content": "x"})).structured_content
                for run in ((await theirs).run_id, ours.run_id, other_run["run"]):
                    for name in ("undo", "redo", "diff", "output", "wait", "cancel"):
                        refused = await mine.call_tool(name, {"run": run})
                        assert refused.is_error is True, (name, run)
                        assert "you have no run called" in refused.content[0].text
                assert (await mine.call_tool("runs", {})).structured_content["runs"] == []
                nothing = await mine.call_tool("undo", {})
                assert nothing.is_error is True and "nothing to undo" in nothing.content[0].text
                (row,) = (await other.call_tool("runs", {})).structured_content["runs"]
                assert (row["run"], row["files"]) == (other_run["run"], ["o.txt"])
        assert sorted(path.name for path in places["workspace"].iterdir()) == ["o.txt", "person.txt", "theirs.txt"]

    asyncio.run(main())


def test_long_output_is_cut_and_paged(served, era):
    async def main():
        async with served(era, tools=[flood]) as (client, _service):
            called = await client.call_tool("flood", {"lines": 20_000})
            run = called.structured_content["run"]
            assert "`output` with run" in called.structured_content["notes"][0]
            assert any(getattr(block, "uri", None) == f"haft://runs/{run}/output" for block in called.content)
            pages, offset = [], 0
            while offset is not None:
                page = (await client.call_tool("output", {"run": run, "offset": offset})).structured_content
                pages.append(page["output"])
                offset = page.get("next", {}).get("offset")
            assert "".join(pages) == flood(20_000)
            assert len(pages) > 3
            some = await client.call_tool("output", {"run": run, "first_line": 7000, "containing": "7001"})
            assert some.content[0].text.startswith("line 7001 ä\nline 17001 ä\n")

    asyncio.run(main())


def test_wait_goes_on_where_a_call_left_off(served, era):
    go = asyncio.Event()

    @tool(readonly=True)
    async def slow() -> str:
        """Wait for a sign."""
        await go.wait()
        return "at last"

    async def main():
        async with served(era, tools=[slow]) as (client, service):
            call = asyncio.create_task(client.call_tool("slow", {}))
            while not service._host.running().live:
                await asyncio.sleep(0.01)
            (run,) = service._host.running().live
            early = await client.call_tool("wait", {"run": run, "seconds": 0.05})
            assert early.is_error is False
            assert early.structured_content["run"] == run and "call `wait`" in early.content[0].text
            waiting = asyncio.create_task(client.call_tool("wait", {"run": run}))
            await asyncio.sleep(0.05)
            go.set()
            assert (await waiting).content[0].text == (await call).content[0].text == "at last"
            assert (await client.call_tool("wait", {"run": run})).content[0].text == "at last"

    asyncio.run(main())


def test_cancelling_a_wait_leaves_the_run_alone_and_cancel_stops_it(served, era):
    @tool(readonly=True)
    async def hang() -> None:
        """Never ends."""
        await asyncio.Event().wait()

    async def main():
        async with served(era, tools=[hang]) as (client, service):
            call = asyncio.create_task(client.call_tool("hang", {}))
            while not service._host.running().live:
                await asyncio.sleep(0.01)
            (run,) = service._host.running().live.values()
            waiting = asyncio.create_task(client.call_tool("wait", {"run": run.id}))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.sleep(0.1)
            assert run.status == "in-progress"
            stopped = await client.call_tool("cancel", {"run": run.id})
            assert stopped.structured_content == {"run": run.id, "cancelled": True}
            ended = await asyncio.wait_for(call, 10)
            assert ended.is_error is True and ended.structured_content["status"] == "cancelled"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("undo", {"runn": "r_1"}),
        ("output", {"run": "r_1", "offset": -1}),
        ("redo", {}),
        ("search_tools", {"query": ""}),
    ],
)
def test_wrong_arguments_are_explained(served, name, arguments):
    async def main():
        async with served("legacy") as (client, _service):
            refused = await client.call_tool(name, arguments)
            assert refused.is_error is True
            assert refused.structured_content["error"]["code"] == "invalid-arguments"

    asyncio.run(main())


def test_the_runs_of_this_client_in_another_workspace_do_not_exist(served, places, tmp_path):
    (tmp_path / "elsewhere").mkdir()

    async def main():
        async with served("legacy", settings=RULES) as (client, _service):
            called = await client.call_tool("write_file", {"path": "a.txt", "content": "of this workspace"})
            run = called.structured_content["run"]
        elsewhere = ToolService.open(workspace=tmp_path / "elsewhere", home=places["home"], settings=RULES)
        async with elsewhere, served("legacy", service=elsewhere) as (client, _service):
            for name in ("undo", "redo", "diff", "output", "wait", "cancel"):
                refused = await client.call_tool(name, {"run": run})
                assert refused.is_error is True, name
                assert "you have no run called" in refused.content[0].text
            assert (await client.call_tool("runs", {})).structured_content["runs"] == []

    asyncio.run(main())


def test_the_beginning_of_ids_says_nothing_about_the_runs_of_others(served):
    async def main():
        async with served("legacy", settings=RULES) as (client, service):
            for path in ("a", "b"):
                await service.call("write_file", {"path": path, "content": "x"})
            refused = await client.call_tool("output", {"run": "r_"})
            assert "you have no run called `r_`" in refused.content[0].text

    asyncio.run(main())


def test_a_client_redoes_only_what_it_undid_itself(served, places):
    file = places["workspace"] / "a.txt"

    async def main():
        async with served("legacy", settings=RULES) as (client, service):
            run = (await client.call_tool("write_file", {"path": "a.txt", "content": "x"})).structured_content["run"]
            undo = (await client.call_tool("undo", {})).structured_content["run"]
            assert (await service.runs.get(undo)).record["decision"]["by"] == "rule"
            assert (await client.call_tool("redo", {"run": run})).is_error is False and file.exists()
            await service.undo(run)
            refused = await client.call_tool("redo", {"run": run})
            assert refused.is_error is True and "needs a person" in refused.content[0].text
            assert not file.exists()
            assert (await service.redo(run)).ok and file.exists()

    asyncio.run(main())
