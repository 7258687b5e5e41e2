"""Tasks of sub-agents against pydantic-ai's own loop, with the same scripted model and plain functions as tools."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from typing import Any

from benchmarks.measure import Row, in_turns
from haft import ApprovalRequest, ToolService
from haft.testing.scripted_model import ScriptedModel, call, say

CYCLES = 9
SIDE_BY_SIDE = 10
PLACE = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None


async def yes(_request: ApprovalRequest) -> bool:
    return True


def peer(workspace: str, address: str) -> Callable[[str], Awaitable[object]]:
    """pydantic-ai's loop with a function that reads files."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=address)))

    @agent.tool_plain
    def read_file(path: str) -> str:
        """Read a file."""
        with open(os.path.join(workspace, path)) as file:
            return file.read()

    async def watch(_context: Any, events: AsyncIterable[Any]) -> None:
        async for _event in events:  # Somebody watches: so its requests are streamed, too.
            pass

    async def run(prompt: str) -> object:
        return await agent.run(prompt, event_stream_handler=watch)

    return run


async def rows() -> list[Row]:
    """What a cycle of a task costs, and ten tasks at once."""
    with tempfile.TemporaryDirectory(dir=PLACE) as workspace, tempfile.TemporaryDirectory() as home:
        for number in range(CYCLES):
            with open(os.path.join(workspace, f"{number}.txt"), "w") as file:
                file.write(f"the text of file {number}\n" * 20)
        with ScriptedModel() as model:
            settings = {
                "subagents.enabled": True,
                "subagents.model": "openai-chat:scripted",
                "subagents.base_url": model.openai_url,
            }
            theirs = peer(workspace, model.openai_url)
            async with ToolService.open(workspace, home=home, approver=yes, settings=settings) as service:

                def script() -> str:
                    return model.task(*[call("read_file", path=f"{n}.txt") for n in range(CYCLES)], say("done"))

                async def task() -> None:
                    outcome = await service.tasks.start(script(), agent="explore")
                    assert outcome.output == "done", outcome

                async def theirs_once() -> None:
                    await theirs(script())

                async def many(work: Callable[[], Awaitable[None]]) -> None:
                    await asyncio.gather(*(work() for _ in range(SIDE_BY_SIDE)))

                one, plain = await in_turns(task, theirs_once, times=1, rounds=7)
                ten, plain_ten = await in_turns(lambda: many(task), lambda: many(theirs_once), times=1, rounds=5)
    cycles = CYCLES + 1
    return [
        Row("a cycle of a task: one read", one / cycles, "pydantic-ai's own loop", plain / cycles),
        Row(f"{SIDE_BY_SIDE} explore agents at once", ten, "the same with its own loop", plain_ten),
    ]


if __name__ == "__main__":
    begun = time.perf_counter()
    for row in asyncio.run(rows()):
        print(f"{row.what}: {row.haft * 1000:.1f} ms, {row.peer}: {row.floor * 1000:.1f} ms, {row.ratio:.2f} x")
    print(f"in {time.perf_counter() - begun:.0f} s")
