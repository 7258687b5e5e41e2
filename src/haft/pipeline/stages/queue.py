"""Watches: a call that finds no place waits here as `queued`. No place is held while a person thinks."""

from __future__ import annotations

from haft.contracts import Outcome
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.schedule import Admission


class Queue:
    """The way to one of the places of this host."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if not self._admission.take():
            if run.status != "queued":
                run.turn("queued")
            await self._admission.wait()
        try:
            return await proceed(run)
        finally:
            self._admission.release()
