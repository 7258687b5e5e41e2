"""Shared by the commands that apply, drop, undo or redo changes: waiting for such a run, and printing its conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import Outcome
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.printing import say
from haft.surfaces.text.terminal import one_line

if TYPE_CHECKING:
    from haft.service import Run

MOST: Final = 50
"""How many paths are printed at most."""


async def wait_for_changes(run: Run, options: Globals) -> Outcome:
    """Wait until a run that applies, drops, undoes or redoes changes has ended. Ctrl-C cancels the run if it has not
    touched a file yet."""
    from haft.surfaces.cli.person.interrupts import Interrupts
    from haft.surfaces.cli.screen.progress import Progress

    progress = Progress(quiet=options.quiet)
    with Interrupts((lambda _text: None) if options.quiet else say) as interrupts:
        interrupts.cancels(run.cancel)
        async for event in run:
            progress.take(event, may_draw=True)
        progress.clear()
        return await run


def tell_conflicts(conflicts: Sequence[dict[str, str]]) -> None:
    """Print for each path in conflict who changed it."""
    for each in conflicts[:MOST]:
        by = "outside of haft" if each["by"] == "outside" else f"by {each['by']}"
        say(f"conflict: {one_line(each['path'])}, changed {by}")
    if len(conflicts) > MOST:
        say(f"and {len(conflicts) - MOST:_} more")
