"""The pipeline at work: makes a run of each call, carries it in a task of its own, and ends them all when it closes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from haft.contracts import BadUsage, Call, RunId
from haft.pipeline import nesting
from haft.pipeline.chain import fold
from haft.pipeline.order import Parts, stages
from haft.pipeline.run import Run
from haft.pipeline.stages import Record
from haft.pipeline.untrusted_calls import UntrustedCalls


class Pipeline:
    """One for each host."""

    def __init__(self, parts: Parts, after_each: Callable[[], None] | None = None) -> None:
        self._after_each = after_each
        self._live: dict[RunId, Run] = {}
        self._foreign = UntrustedCalls()
        order = stages(parts, self._live, self._foreign)
        record = order[0]
        assert isinstance(record, Record)
        self._record = record
        self._way = fold(order)

    @property
    def live(self) -> Mapping[RunId, Run]:
        """The runs that have not ended."""
        return self._live

    @property
    def abandoned(self) -> int:
        """Tools that ignored their cancellation and are still at work."""
        return self._foreign.abandoned

    def call(self, call: Call) -> Run:
        """Start a run. It goes on whether or not anyone watches; one that another made, as long as that one does."""
        if call.parent is None:
            run = Run(call, self._record)
        else:
            run = Run(call, self._record, self.caller(call.parent))
            nesting.adopt(run)
        self._live[call.run] = run
        # The loop holds tasks weakly; the run holds its own, and stays in `live` until it has ended.
        run.begin(asyncio.get_running_loop().create_task(self._carry(run)))
        return run

    def caller(self, name: str) -> Run:
        """The run of this host that is to make a call; `BadUsage` where there is none of that name."""
        run = self._live.get(RunId(name))
        if run is None:
            raise BadUsage(
                f"`{name}` can make no call: it is no run of this host, or has ended",
                hint="a call's parent is a run that is still at work; without one the call stands by itself",
            )
        return run

    def within(self) -> Run | None:
        """The run of this host whose tool is at work here, if one is, and may make calls."""
        run = nesting.CURRENT.get()
        return run if run is not None and self._live.get(run.id) is run and not run.is_closed else None

    async def _carry(self, run: Run) -> None:
        nesting.CURRENT.set(None)  # Of the task alone: whoever is asked about this call was not called by another.
        run.carried()
        try:
            outcome = await self._way(run)
        finally:
            if run.children:
                with contextlib.suppress(asyncio.CancelledError):
                    await nesting.children_ended(run, cancel=True)
            del self._live[run.call.run]
            if run.parent is not None:
                nesting.part(run)
        run.finish(outcome)
        if self._after_each is not None:
            self._after_each()

    async def close(self) -> None:
        """Cancel what is still on its way, and wait until all of it has ended."""
        while self._live:
            runs = list(self._live.values())
            for run in runs:
                run.cancel()
            for run in runs:
                await run
        self._record.close()
