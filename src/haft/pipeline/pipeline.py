"""The pipeline at work: makes a run of each call, carries it in a task of its own, and ends them all when it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from haft.contracts import Call, RunId
from haft.pipeline.chain import fold
from haft.pipeline.foreign import Foreign
from haft.pipeline.order import Parts, stages
from haft.pipeline.run import Run
from haft.pipeline.stages import Record


class Pipeline:
    """One for each host."""

    def __init__(self, parts: Parts, after_each: Callable[[], None] | None = None) -> None:
        self._after_each = after_each
        self._live: dict[RunId, Run] = {}
        self._foreign = Foreign()
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
        """Start a run. It goes on whether or not anyone watches."""
        run = Run(call, keeper=self._record)
        self._live[call.run] = run
        # The loop holds tasks weakly; the run holds its own, and stays in `live` until it has ended.
        run.begin(asyncio.get_running_loop().create_task(self._carry(run)))
        return run

    async def _carry(self, run: Run) -> None:
        run.carried()
        try:
            outcome = await self._way(run)
        finally:
            del self._live[run.id]
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
