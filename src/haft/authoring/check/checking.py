"""Checking many things at once, and each in the order in which it was named.

Programs are asked at the same time, so many at once and no more; whoever is waited for makes room for others after a
while. One that seemed slow is asked again alone: what a crowd did to it, or the start of the sandbox, is not its fault.
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
"""At most so many run, those that hang among them."""
_PATIENCE: Final = 1.0
"""Seconds after which another one may start."""
MOST_AGAIN: Final = 10
"""Slow ones that are asked again."""


async def check_targets(
    sources: Iterable[ToolSource],
    targets: Sequence[Target],
    launcher: DescribeLauncher,
    reserved: Collection[str] = (),
) -> list[list[Report]]:
    """Everything, in order, each by the source of its format. A Python file may have several tools."""
    named = {source.name: source for source in sources}

    async def check(target: Target) -> list[Report]:
        return list(await named[target.format].check(target, launcher, reserved))

    turns, places = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(MOST_WAITED_FOR)

    async def one(target: Target) -> list[Report]:
        async with places:
            async with turns:
                asked = asyncio.ensure_future(check(target))
                try:
                    await asyncio.wait([asked], timeout=_PATIENCE)
                except BaseException:
                    asked.cancel()
                    raise
            return await asked

    found = list(await asyncio.gather(*(one(target) for target in targets)))
    slow = [at for at, reports in enumerate(found) if any(report.has("describe-slow") for report in reports)]
    for at in slow[:MOST_AGAIN]:
        found[at] = await check(targets[at])
    return found
