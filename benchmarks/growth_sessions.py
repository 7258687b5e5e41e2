"""How the cost of a writing session call grows with the workspace: it should not, because only its layer is exchanged.

    python -m benchmarks.growth_sessions

A call must not cost more than three times as much in a workspace of 100,000 files as in one of 100.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from haft import ToolService

FEW, MANY = 100, 100_000
MOST = 3.0
"""How much more a call may cost in the large workspace."""
CALLS = 15
PLUGIN = """
class Plugin:
    def get_tool_schemas(self, state):
        return [{"name": "write", "description": "Writes.", "parameters": {"type": "object", "properties": {}}}]

    def execute_tool(self, name, arguments, state):
        with open("written", "a") as file:
            file.write("x")
"""


def session_call_seconds(few: int = FEW, many: int = MANY, calls: int = CALLS) -> tuple[float, float]:
    """The median seconds of one writing session call, in a small and in a large workspace."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        top = Path(folder)
        (top / "plugin.py").write_text(PLUGIN)
        for name, files in (("few", few), ("many", many)):
            _fill(top / name, files)
        small, large = asyncio.run(_measured(top, calls))
    return statistics.median(small), statistics.median(large)


def _fill(workspace: Path, files: int) -> None:
    for number in range(files):
        if number % 100 == 0:
            place = workspace / f"{number // 10_000}" / f"{number // 100}"
            place.mkdir(parents=True)
        (place / f"{number}.txt").write_text(f"{number}")


async def _measured(top: Path, calls: int) -> tuple[list[float], list[float]]:
    """Measure both workspaces in turns, so that other load on the machine affects both."""
    entry = {"plugin": f"path:{top}/plugin.py", "grant": {"write": ["."]}}

    async def yes(_request: object) -> bool:
        return True

    def opened(name: str) -> ToolService:
        return ToolService.open(
            top / name, home=top / f"home-{name}", approver=yes, installed=False, settings={"plugins": [entry]}
        )

    times: tuple[list[float], list[float]] = [], []
    async with opened("few") as small, opened("many") as large:
        for number in range(calls + 2):
            for service, found in zip((small, large), times, strict=True):
                began = time.perf_counter()
                outcome = await service.call("write", {})
                assert outcome.changes.state == "committed", outcome
                if number >= 2:  # The first call starts the process.
                    found.append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    small, large = session_call_seconds(many=int(os.environ.get("FILES", MANY)))
    print(f"a writing session call: {small * 1000:.1f} ms and {large * 1000:.1f} ms, {large / small:.2f} x")
