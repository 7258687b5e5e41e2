"""How a run ended, for an answer that waits for it only so long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from haft.service import RunRecord
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.contracts import Outcome
    from haft.service import Run
    from haft.surfaces.http.api.ask import Ask


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a run as JSON; of a run that has not ended, as far as it is known."""

    shape: dict[str, Any]
    has_ended: bool


async def ending_of(ask: Ask, run: Run | RunRecord, seconds: float) -> Ending:
    """The outcome of a run. If it does not end in so many seconds, it is stored before its id is given away. Only the
    waiting ends with the request: the run goes on."""
    if isinstance(run, RunRecord):
        return Ending(run.outcome, not run.is_open)
    ended = run.outcome
    if ended is None and seconds > 0:
        waiting = asyncio.ensure_future(_outcome_of(run))
        try:
            await asyncio.wait([waiting], timeout=seconds)
        finally:
            waiting.cancel()
        ended = run.outcome
    if ended is not None:
        return Ending(ended.to_json(), has_ended=True)
    record = await ask.service.runs.record(run.id)
    return Ending(record.outcome, not record.is_open)


async def _outcome_of(run: Run) -> Outcome:
    return await run
