"""Checks many targets at once, and returns the reports in the order of the targets.

Only `AT_ONCE` programs are described at the same time. A program that has run for more than one second no longer
counts, so that another program can start. But never more than `MOST_WAITED_FOR` programs run. A program that seemed
slow is described once more, alone: perhaps only the load of the machine or the start of the sandbox made it slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from haft.contracts import DescribeLauncher
from haft.sources import Target, ToolSource
from haft.sources.checks import Report

AT_ONCE: Final = 16
MOST_WAITED_FOR: Final = 64
"""The most programs that run at the same time, including those that hang."""
_PATIENCE: Final = 1.0
"""If a program takes longer than this many seconds, another may start meanwhile."""
MOST_AGAIN: Final = 10
"""How many slow programs are described again at most."""


async def check_targets(
    sources: Iterable[ToolSource],
    targets: Sequence[Target],
    launcher: DescribeLauncher,
    reserved: Collection[str] = (),
) -> list[list[Report]]:
    """The reports about each target, in the order of the targets. Each target is checked by the source for its format.
    A target can have several reports, because a Python file may have several tools."""
    by_name = {source.name: source for source in sources}

    async def check(target: Target) -> list[Report]:
        return list(await by_name[target.format].check(target, launcher, reserved))

    turns, places = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(MOST_WAITED_FOR)

    async def one(target: Target) -> list[Report]:
        async with places:
            async with turns:
                task = asyncio.ensure_future(check(target))
                try:
                    await asyncio.wait([task], timeout=_PATIENCE)
                except BaseException:
                    task.cancel()
                    raise
            return await task

    found = list(await asyncio.gather(*(one(target) for target in targets)))
    slow = [at for at, reports in enumerate(found) if any(report.has("describe-slow") for report in reports)]
    for at in slow[:MOST_AGAIN]:
        found[at] = await check(targets[at])
    return found
