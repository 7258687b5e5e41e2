"""A template that is kept loaded, called through the whole pipeline, compared with `python tool.py`; and the memory of
twenty.

The first row is a call after a pause, as a person or a model makes them; the second row is calls without a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from benchmarks.measure import Row, in_turns, print_table
from haft import ApprovalRequest, ToolService

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "examples", "json-reader")
MANY = 20
MOST_BYTES = 800_000_000
ARGUMENTS = {"filepath": "data/sample.json"}


async def yes(_request: ApprovalRequest) -> bool:
    return True


async def rows(scratch: str) -> tuple[list[Row], str, bool]:
    """The rows, a line about memory, and whether the memory is as promised."""
    workspace, home = os.path.join(scratch, "workspace"), os.path.join(scratch, "home")
    for number in range(MANY):
        folder = os.path.join(workspace, "templates", f"reader{number}")
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".venv", ".requirements_hash.txt"))
    settings = {"templates.paths": ["templates"]}
    async with ToolService.open(workspace, approver=yes, home=home, settings=settings) as service:

        async def ours() -> None:
            outcome = await service.call("reader0", ARGUMENTS)
            assert outcome.status == "done", outcome

        async def fresh() -> None:
            words = ["--user-params", "{}", "--tool-params", '{"filepath": "data/sample.json"}']
            folder = os.path.join(workspace, "templates", "reader0")
            python = os.path.join(folder, ".venv", "bin", "python")
            subprocess.run([python, os.path.join(folder, "tool.py"), *words], check=True, capture_output=True)

        await loaded(service, ["reader0"])
        call, python = await in_turns(ours, fresh, times=1, rounds=21)
        crowded, again = await in_turns(ours, fresh, times=10, rounds=5)
        await loaded(service, [f"reader{number}" for number in range(1, MANY)])
        used = sum(map(proportional, below(os.getpid())))
    peer = "python tool.py of it"
    line = f"{MANY} templates kept loaded take {used / 1e6:.0f} MB (promised: at most {MOST_BYTES / 1e6:.0f} MB)"
    return (
        [
            Row("a template kept loaded, a call", call, peer, python, 0.1),
            Row("the same, one call after the other", crowded, peer, again),
        ],
        line,
        used <= MOST_BYTES,
    )


async def loaded(service: ToolService, names: list[str]) -> None:
    """Call each template until it is kept loaded."""
    for name in names:
        before = service.loaded
        outcome = await service.call(name, ARGUMENTS)
        assert outcome.status == "done", outcome
        until = time.monotonic() + 30
        while service.loaded == before:
            assert time.monotonic() < until, f"`{name}` is not kept loaded"
            await asyncio.sleep(0.02)


def below(root: int) -> list[int]:
    """All descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            children.setdefault(int(file.read().rsplit(b")", 1)[1].split()[1]), []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        waiting += (more := children.get(waiting.pop(), []))
        found += more
    return found


def proportional(pid: int) -> int:
    """The process's share of memory: shared pages are divided among the processes that use them."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        return int(file.read().split(b"\nPss:", 1)[1].split(None, 1)[0]) * 1024
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        measured, memory, _is_kept = asyncio.run(rows(directory))
        print_table(measured)
        print(memory)
