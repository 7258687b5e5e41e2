"""Ten tasks side by side, each in a layer of its own, over a workspace of 100,000 files: when each of them starts, what
its first calls take, and the memory that haft and its helpers take.

`make bench-programs` prints the numbers, `python -m benchmarks.layered_tasks FILES` those of another workspace. Nothing
is promised.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.programs import make_repository, memory_of
from haft import ToolService
from haft.contracts import Answer, Effects, ToolContext, ToolName, ToolSpec

TIMES = 10


class Task:
    """Makes a few calls in a layer, as a sub-agent does, and waits until all tasks have made theirs."""

    spec = ToolSpec(
        ToolName("work_in_layer"), "builtin", "Make calls.", {"type": "object"}, effects=Effects(),
        provenance="builtin", trial_in_layer=True,
    )  # fmt: skip

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.done: dict[str, float] = {}
        self.opened = asyncio.Event()

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: Mapping[str, Any], context: ToolContext) -> Answer:
        self.began[context.run] = time.perf_counter()
        for call in (
            ("write_file", {"path": f"{context.run}.txt", "content": "x\n"}),
            ("shell", {"command": f"cat {context.run}.txt; echo y >> d0/e0/f0.txt"}),
            ("read_file", {"path": "d0/e0/f0.txt"}),
        ):
            outcome = await context.call(*call)
            assert outcome.error is None, outcome.error
        self.done[context.run] = time.perf_counter()
        await self.opened.wait()
        return Answer(text="")


async def measure(workspace: str, home: str, times: int) -> None:
    task = Task()
    settings = {"approval.expires_seconds": 0, "limits.max_concurrent": 2 * TIMES}
    async with ToolService.open(workspace, home=home, tools=[task], installed=False, settings=settings) as service:
        await service.call("shell", {"command": "true"})
        before, began = memory_of(os.getpid()), time.perf_counter()
        runs = [service.call("work_in_layer", trial=True) for _ in range(times)]
        while len(task.done) < times:
            await asyncio.sleep(0.005)
        memory = memory_of(os.getpid())
        starts = sorted(at - began for at in task.began.values())
        calls = sorted(task.done[run] - task.began[run] for run in task.done)
        task.opened.set()
        outcomes = [await run for run in runs]
        assert {outcome.changes.state for outcome in outcomes} == {"held"}
        print(f"{times} at once: the first began after {starts[0]:.3f} s, the last after {starts[-1]:.3f} s")
        print(f"  three calls in each: {calls[0]:.2f} to {calls[-1]:.2f} s")
        print(f"  memory of haft and its helpers: {before / 1e6:.0f} MB before, {memory / 1e6:.0f} MB with all of them")
        for outcome in outcomes:
            await service.drop(outcome.run_id)


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory(prefix="haft-tasks-", dir="/var/tmp") as place:
        workspace = os.path.join(place, "workspace")
        os.mkdir(workspace)
        make_repository(workspace, files)
        print(f"tasks in layers over {files:_} files")
        for times in (1, TIMES):
            asyncio.run(measure(workspace, os.path.join(place, "state"), times))


if __name__ == "__main__":
    main()
