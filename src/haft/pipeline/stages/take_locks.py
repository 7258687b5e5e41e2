"""A stage that watches a call, and may stop it: it computes what the call reads and writes (its footprint), and makes
the call wait for the calls, of any process, that will write the same paths or use the same declared resource.

Calls of one server or plugin share a resource too, but only to keep their order within a batch: between independent
callers there is no order to keep, and the server or plugin decides which calls run at once.

Only calls whose writes are known take locks. They hold them until the rest of the pipeline has returned, so that the
next call starts from what they committed. A call that would close a circle of calls that wait for each other ends here
with the error `deadlock`. See `haft.schedule.locks`.
"""

from __future__ import annotations

import contextlib

from haft.contracts import Outcome
from haft.pipeline import nesting
from haft.pipeline.chain import Proceed
from haft.pipeline.footprints import Footprints, constant_footprint
from haft.pipeline.run import Run
from haft.schedule import Locks, WaitingLine, Wanted


class TakeLocks:
    """Takes the locks of a call, all together."""

    def __init__(self, footprints: Footprints, locks: Locks, line: WaitingLine) -> None:
        self._footprints = footprints
        self._locks = locks
        self._line = line

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether calls of the tool never take locks. Then this sets the footprint."""
        known = constant_footprint(run.tool.spec)
        if known is None:
            return False
        run.revise(footprint=known)
        return True

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        footprint = await self._footprints.of_run(run)
        run.revise(footprint=footprint)
        resource = run.tool.spec.resource
        if not (footprint.writes or resource is not None) or not _may_wait(run):
            return await proceed(run)
        callers = tuple(each.id for each in nesting.callers(run))
        resources = () if resource is None else (resource,)
        wanted = Wanted(run.id, run.call.name, footprint.writes or (), resources, callers)
        run.hold = hold = await self._locks.claim(wanted)
        try:
            if hold.must_wait:
                with self._line.joined(run.call.name, has_waited=run.has_waited):
                    run.has_waited = True
                    async with nesting.callers_paused(run) if run.parent is not None else contextlib.nullcontext():
                        await hold.wait(lambda holder, is_person: run.tell_waiting(holder, is_person=is_person))
            return await proceed(run)
        finally:
            hold.release()


def _may_wait(run: Run) -> bool:
    """Whether the call may wait for other callers. A call that is attached to a process outside haft may not, because
    nobody knows what that process waits for. Neither may a call whose caller has the workspace alone: the others wait
    for this caller."""
    if run.call.attachment is not None:
        return False
    return not any(each.transaction is not None and each.transaction.lock is not None for each in nesting.callers(run))
