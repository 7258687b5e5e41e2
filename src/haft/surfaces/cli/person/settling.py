"""What the commands that settle changes share: the runs that are meant, waiting for the end, who stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import Outcome
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import say
from haft.surfaces.cli.screen.terminal import one_line

if TYPE_CHECKING:
    from haft.service import Run

MOST: Final = 50
"""Paths that a person is shown."""


async def settled(run: Run, said: Globals) -> Outcome:
    """Wait for a run that settles changes. Ctrl-C ends it for as long as it has touched nothing."""
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.screen.progress import Progress

    progress = Progress(quiet=said.quiet)
    with Interrupts((lambda _text: None) if said.quiet else say) as interrupts:
        interrupts.cancels(run.cancel)
        async for event in run:
            progress.take(event, may_draw=True)
        progress.clear()
        return await run


def tell_in_the_way(conflicts: Sequence[dict[str, str]]) -> None:
    """Path by path, who changed it."""
    for each in conflicts[:MOST]:
        by = "outside of haft" if each["by"] == "outside" else f"by {each['by']}"
        say(f"in the way: {one_line(each['path'])}, changed {by}")
    if len(conflicts) > MOST:
        say(f"and {len(conflicts) - MOST:_} more")
