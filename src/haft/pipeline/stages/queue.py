"""Watches: a call that finds no place waits here as `queued`. No place is held while a person thinks.

A call that another one made borrows the place of that one: see `haft.schedule.place`.
"""

from __future__ import annotations

from haft.contracts import Outcome
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.schedule import Admission, Place


class Queue:
    """The way to one of the places of this host."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        run.place = place = Place(self._admission)
        caller = None if run.parent is None else run.parent.place
        if not place.take(caller):
            if run.status != "queued":
                run.turn("queued")
            await place.wait(caller)
        try:
            return await proceed(run)
        finally:
            place.release()
