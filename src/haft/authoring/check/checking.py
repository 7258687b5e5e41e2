"""Checking many things at once, and each in the order in which it was named.

Programs are asked at the same time, so many at once and no more; whoever is waited for makes room for others after a
while. One that seemed slow is asked again alone: what a crowd did to it, or the start of the sandbox, is not its fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final

from haft.authoring.check.targets import Target
from haft.contracts import Launcher
from haft.sources.agent_studio.checking import check_template
from haft.sources.amp_toolbox.checking import check_executable
from haft.sources.bash_plugin.checking import check_plugin
from haft.sources.checks.findings import Report
from haft.sources.python.checking import check_python
from haft.sources.skills.checking import check_skill

AT_ONCE: Final = 16
MOST_WAITED_FOR: Final = 64
"""At most so many run, those that hang among them."""
_PATIENCE: Final = 1.0
"""Seconds after which another one may start."""
MOST_AGAIN: Final = 10
"""Slow ones that are asked again."""


async def check_target(target: Target, launcher: Launcher, reserved: Collection[str] = ()) -> list[Report]:
    """One thing; a Python file may have several tools."""
    match target.format:
        case "amp-toolbox":
            return [await check_executable(target.path, launcher, reserved, folder=target.folder, within=target.within)]
        case "bash-plugin":
            return [await check_plugin(target.path, launcher, reserved)]
        case "agent-studio":
            return [check_template(target.path, reserved)]
        case "skill":
            return [check_skill(target.path)]
        case "python":
            return check_python(target.path, reserved)


async def check_targets(
    targets: Sequence[Target],
    launcher: Launcher,
    reserved: Collection[str] = (),
    *,
    granting: Callable[[Target], Launcher] | None = None,
) -> list[list[Report]]:
    """Everything, in order. `granting` gives the launcher for one that a rule lets have more when it is described."""
    launcher_for = granting or (lambda _target: launcher)
    turns, places = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(MOST_WAITED_FOR)

    async def one(target: Target) -> list[Report]:
        async with places:
            async with turns:
                asked = asyncio.ensure_future(check_target(target, launcher_for(target), reserved))
                try:
                    await asyncio.wait([asked], timeout=_PATIENCE)
                except BaseException:
                    asked.cancel()
                    raise
            return await asked

    found = list(await asyncio.gather(*(one(target) for target in targets)))
    slow = [at for at, reports in enumerate(found) if any(report.has("describe-slow") for report in reports)]
    for at in slow[:MOST_AGAIN]:
        found[at] = await check_target(targets[at], launcher_for(targets[at]), reserved)
    return found
