"""What the commands that settle changes share: the runs that are meant, waiting for the end, who stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from haft.contracts import BadUsage, Outcome
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.printing import say
from haft.surfaces.cli.terminal import one_line

if TYPE_CHECKING:
    from haft.pipeline import Run
    from haft.runs import RunRecord

MOST: Final = 50
"""Paths that a person is shown."""


def nothing_to(verb: str, record: RunRecord) -> BadUsage:
    """Why there is nothing to undo, apply and so on of a run that has no change set."""
    changes = record.record["changes"]
    if record.is_open:
        return BadUsage(f"{record.id} has not ended yet", hint=f"`haft watch {record.id}` follows it")
    about = record.record["arguments"].get("runs") if record.tool in ("undo", "redo", "apply", "drop") else None
    hint = f"it settled {' '.join(map(str, about))}" if isinstance(about, list) else None
    if changes["state"] == "discarded":
        return BadUsage(f"there is nothing to {verb}: the changes of {record.id} were thrown away", hint=hint)
    if not changes["complete"]:
        reason = changes["reason"]
        return BadUsage(f"there is nothing to {verb}: what {record.id} changed is not known ({reason})", hint=hint)
    if changes["files"]:
        return BadUsage(f"there is nothing to {verb}: what {record.id} changed was not kept", hint=hint)
    return BadUsage(f"there is nothing to {verb}: {record.id} changed nothing", hint=hint)


async def settled(run: Run, said: Globals) -> Outcome:
    """Wait for a run that settles changes. Ctrl-C ends it for as long as it has touched nothing."""
    from haft.surfaces.cli.interrupts import Interrupts
    from haft.surfaces.cli.progress import Progress

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
