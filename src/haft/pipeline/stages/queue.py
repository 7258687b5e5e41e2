"""Watches: a call that finds no place waits here as `queued`. No place is held while a person thinks."""

from __future__ import annotations

from collections.abc import Mapping

from haft.contracts import Call, Outcome, RunId
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.schedule import Admission


class Queue:
    """The way to one of the places of this host."""

    def __init__(self, live: Mapping[RunId, Run], admission: Admission) -> None:
        self._live = live
        self._admission = admission

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        if not self._admission.take():
            run = self._live[call.run]
            if run.status != "queued":
                run.turn("queued", call)
            await self._admission.wait()
        try:
            return await proceed(call)
        finally:
            self._admission.release()
