"""What the specification of the tool system says under "Parallel execution" and "Intelligent Result Caching", and what
is wrong in its sketches."""

import asyncio
import os

import pytest

from haft import ToolService, tool


@pytest.fixture
def places(tmp_path):
    (tmp_path / "workspace").mkdir()
    return {"workspace": tmp_path / "workspace", "home": tmp_path / "home"}


def test_parallel_execution_never_puts_a_call_in_a_group_before_the_one_it_depends_on(places):
    """`analyzeExecutionDependencies`: for each call, the sketch takes the first group that has none of its
    dependencies, also if a dependency stands in a later group. With the third call here it takes group 1, beside the
    first one, although the second one, in group 2, writes what the third one reads."""
    calls = [
        {"id": "read", "tool": "read_file", "args": {"path": "a"}},
        {"id": "write", "tool": "write_file", "args": {"path": "a", "content": "new"}},
        {"id": "read again", "tool": "read_file", "args": {"path": "a"}},
        {"id": "elsewhere", "tool": "read_file", "args": {"path": "b"}},
    ]
    for name in ("a", "b"):
        (places["workspace"] / name).write_text("old")

    async def main():
        async with ToolService.open(**places, approver=lambda _request: True) as service:
            plan = await service.plan_batch(calls)
            assert plan.groups == (("read", "elsewhere"), ("write",), ("read again",))
            outcomes = await service.batch(calls)
            assert [outcome.output for outcome in outcomes if outcome.tool == "read_file"] == ["old", "new", "old"]

    asyncio.run(main())


def test_parallel_execution_runs_independent_tools_at_once(places):
    """ "Executes independent tools in parallel while respecting dependencies": each of two calls waits here until the
    other one has begun."""
    begun = []

    @tool(readonly=True)
    async def meet(name: str) -> str:
        """Wait for the other call."""
        begun.append(name)
        while len(begun) < 2:
            await asyncio.sleep(0)
        return name

    async def main():
        async with ToolService.open(**places, tools=[meet]) as service:
            outcomes = await service.batch([("meet", {"name": "one"}), ("meet", {"name": "two"})])
            assert [outcome.output for outcome in outcomes] == ["one", "two"]

    asyncio.run(main())


def test_caching_gives_the_result_of_a_read_only_tool_again_until_a_file_changes(places):
    """ "Caches tool results for read-only operations with dependency tracking", with 1,000 entries for 300 seconds."""
    notes, runs = places["workspace"] / "notes", []
    notes.write_text("one")

    @tool(readonly=True, cacheable=True, reads=["path"])
    def count(path: str) -> str:
        """Read a file."""
        runs.append(path)
        return notes.read_text()

    async def main():
        async with ToolService.open(**places, tools=[count]) as service:
            values = service.config.values
            assert (values["cache.entries"], values["cache.seconds"]) == (1000, 300.0)
            while not (await service.call("count", {"path": "notes"})).cached:
                pass
            before = len(runs)
            assert (await service.call("count", {"path": "notes"})).output == "one"
            assert len(runs) == before
            notes.write_text("two")
            assert (await service.call("count", {"path": "notes"})).output == "two"

    asyncio.run(main())


def test_caching_does_not_trust_mtimes_and_knows_the_caller(places):
    """`isCacheStale` compares the mtime of each dependency with the time of the result, so a file with a restored mtime
    counts as unchanged, and a new file is no dependency. The key of the sketch has no caller."""
    notes = places["workspace"] / "notes"
    notes.write_text("one\n")

    async def main():
        async with ToolService.open(**places) as service:
            while not (await service.call("search", {"pattern": "."})).cached:
                pass
            assert not (await service.call("search", {"pattern": "."}, who="someone else")).cached
            before = notes.stat()
            notes.write_text("two\n")
            os.utime(notes, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert (await service.call("search", {"pattern": "."})).output == "notes:1:two\n"
            while not (await service.call("search", {"pattern": "."})).cached:
                pass
            (places["workspace"] / "more").write_text("three\n")
            assert (await service.call("search", {"pattern": "."})).output == "more:1:three\nnotes:1:two\n"

    asyncio.run(main())
