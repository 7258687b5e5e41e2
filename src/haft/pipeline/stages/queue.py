"""A stage that may stop a call: it lets only a limited number of calls run at the same time (`max_concurrent`). Each of
them holds a place in the queue; a call that finds no free place waits here with the status `queued`. If too many calls
wait already (`max_queued`), the call ends with the error `busy`. No call holds a place while a person thinks.

A call that is attached to a process outside haft (see `Attachment`) waits here first, until that process asks for it.
If it runs in the background, it takes no place.

A call that another call made borrows the place of its caller: see `haft.schedule.slot`.
"""

from __future__ import annotations

from haft.contracts import Outcome
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.schedule import Admission, Caller, Slot, WaitingLine
from haft.values import replace


class Queue:
    """Gives the call one of the host's places, and waits if none is free."""

    def __init__(self, admission: Admission, line: WaitingLine) -> None:
        self._admission = admission
        self._line = line

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        attachment = run.call.attachment
        if attachment is not None:
            await attachment.wait_for_start()
            if attachment.profile is not None:
                run.revise(decision=replace(run.decision, profile=attachment.profile))
            if attachment.is_background:
                return await proceed(run)
        run.place = place = Slot(self._admission, Caller(run.call.who, run.call.principal.thread or ""))
        caller = None if run.parent is None else run.parent.place
        if not place.take(caller):
            with self._line.joined(run.call.name, has_waited=run.has_waited):
                run.has_waited = True
                if run.status != "queued":
                    run.set_status("queued")
                await place.wait(caller)
        try:
            return await proceed(run)
        finally:
            place.release()
