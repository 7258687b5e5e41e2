"""Checks many targets at once, and returns the reports in the order of the targets.

A limited number of programs is described at the same time; after a while, a program that takes long makes room for
another. A program that seemed slow is described again alone, since the load or the start of the sandbox may be the
cause.
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
"""Seconds after which another program may start."""
MOST_AGAIN: Final = 10
"""How many slow programs are described again."""


async def check_targets(
    sources: Iterable[ToolSource],
    targets: Sequence[Target],
    launcher: DescribeLauncher,
    reserved: Collection[str] = (),
) -> list[list[Report]]:
    """The reports of each target, in order, each by the source of its format. A Python file may have several tools."""
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
