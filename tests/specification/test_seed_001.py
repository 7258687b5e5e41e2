"""What the specification of the tool system says under "Parallel execution", and what is wrong in its sketch."""

import asyncio

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
