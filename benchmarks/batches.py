"""Batches against the same calls one after another, and what still answers while a thousand calls wait."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable

from benchmarks.measure import Row
from haft import ApprovalRequest, ToolService, tool

ROUNDS = 5
WAITING = 1_000
CALLERS = 20
PLACE = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
TURN = [
    *(("read_file", {"path": f"src/m{number}.py"}) for number in range(6)),
    ("search", {"pattern": "def f7", "path": "src"}),
    ("search", {"pattern": "import", "path": "tests"}),
    ("shell", {"command": "python3 -m unittest discover -s tests"}),
]
"""An agent's typical turn: six reads, two searches, a test run."""


async def yes(_request: ApprovalRequest) -> bool:
    return True


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def populate(workspace: str) -> None:
    os.mkdir(os.path.join(workspace, "src"))
    os.mkdir(os.path.join(workspace, "tests"))
    for number in range(50):
        with open(os.path.join(workspace, "src", f"m{number}.py"), "w") as file:
            file.write("".join(f"def f{each}():\n    return {each}\n" for each in range(200)))
    with open(os.path.join(workspace, "tests", "test_m.py"), "w") as file:
        file.write("import time, unittest\nclass T(unittest.TestCase):\n    def test(self): time.sleep(0.2)\n")


async def sleeps(service: ToolService) -> Row:
    """Ten calls that sleep, at once."""

    async def ten(command: str) -> None:
        outcomes = await service.batch([("shell", {"command": command})] * 10)
        assert all(outcome.ok for outcome in outcomes), outcomes[0].error

    await ten("true")
    taken = [(await seconds(lambda: ten("sleep 1")), await seconds(lambda: ten("true"))) for _ in range(ROUNDS)]
    slept, empty = (statistics.median(each) for each in zip(*taken, strict=True))
    return Row("ten `sleep 1` in a batch", slept, "1 s + ten `true` in a batch", 1 + empty, 1.15)


async def turn(service: ToolService) -> Row:
    """A typical turn as a batch, and one call after another."""

    async def serially() -> None:
        for name, arguments in TURN:
            assert (await service.call(name, arguments)).ok

    async def at_once() -> None:
        assert all(outcome.ok for outcome in await service.batch(TURN))

    await at_once()
    taken = [(await seconds(at_once), await seconds(serially)) for _ in range(ROUNDS)]
    batch, one_by_one = (statistics.median(each) for each in zip(*taken, strict=True))
    return Row("6 reads, 2 searches, tests: a batch", batch, "one after another", one_by_one)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def crowded(workspace: str, home: str) -> tuple[list[Row], str]:
    """What answers while a thousand calls of twenty callers wait, one of which sent 900."""
    gate = asyncio.Event()

    @tool(readonly=True)
    async def wait_for_gate() -> None:
        """Wait."""
        await gate.wait()

    async def measured(service: ToolService) -> dict[str, float]:
        """Seconds of each, the median of many."""

        async def cancelled() -> None:
            run = service.call("wait_for_gate", who="impatient")
            while run.status != "queued" or not run.cancel():
                await asyncio.sleep(0)
            await run

        async def listed() -> None:
            service.tools()

        async def logged() -> None:
            service.runs(limit=50)

        found = {}
        for name, work in (("tools list", listed), ("log", logged), ("cancel", cancelled)):
            await work()
            found[name] = statistics.median([await seconds(work) for _ in range(30)])
        return found

    async with ToolService.open(workspace, tools=[wait_for_gate], home=home, installed=False) as service:
        gate.set()
        await asyncio.gather(*[service.call("wait_for_gate") for _ in range(WAITING)])  # So that the log is as long.
        gate.clear()
        holders = [service.call("wait_for_gate", who="holder") for _ in range(10)]
        await asyncio.sleep(0.5)
        idle = await measured(service)
        before = resident()
        callers = [0] * 900 + [1 + number % (CALLERS - 1) for number in range(WAITING - 900)]
        waiting = [service.call("wait_for_gate", who=f"agent-{each}") for each in callers]
        await asyncio.sleep(1)
        full = resident()
        busy = await measured(service)
        gate.set()
        for run in (*holders, *waiting):
            assert (await run).ok
    rows = [
        Row(f"{name}, 1,000 calls waiting" if name != "cancel" else "cancel of a waiting call, 1,000 more", busy[name],
            "with none waiting", idle[name], 2.0)
        for name in busy
    ]  # fmt: skip
    return rows, f"a waiting call takes {(full - before) / WAITING / 1000:.1f} kB of memory"


async def rows() -> tuple[list[Row], str]:
    found: list[Row] = []
    with tempfile.TemporaryDirectory(dir=PLACE) as workspace, tempfile.TemporaryDirectory(dir=PLACE) as home:
        populate(workspace)
        async with ToolService.open(workspace, approver=yes, home=home, installed=False) as service:
            found += [await sleeps(service), await turn(service)]
    with tempfile.TemporaryDirectory(dir=PLACE) as workspace, tempfile.TemporaryDirectory(dir=PLACE) as home:
        more, memory = await crowded(workspace, home)
    return found + more, memory


if __name__ == "__main__":
    from benchmarks.measure import print_table

    table, said = asyncio.run(rows())
    print_table(table)
    print(f"\n{said}")
