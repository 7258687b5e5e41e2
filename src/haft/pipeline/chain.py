"""Folding stages into one function: each stage is handed the rest of the way as `proceed`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from haft.contracts import Outcome
from haft.pipeline.run import Run

Proceed = Callable[[Run], Awaitable[Outcome]]


class Stage(Protocol):
    """One reason to stop, change or watch a call: `run.call`, which a stage that changes it replaces."""

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome: ...

    # A stage that has nothing to do with many calls may have `passes(run) -> bool`: where that says yes, the call goes
    # on as if the stage were not there.


async def _nowhere(run: Run) -> Outcome:
    raise AssertionError(f"no stage ended the call of {run.call.name}")


def fold(stages: Sequence[Stage]) -> Proceed:
    """The whole way, from the first stage to the last."""
    way: Proceed = _nowhere
    for stage in reversed(stages):
        way = _before(way, stage)
    return way


def _before(way: Proceed, stage: Stage) -> Proceed:
    """One more stage in front of a way."""
    enter = stage.__call__
    passes: Callable[[Run], bool] | None = getattr(stage, "passes", None)
    if passes is None:
        return lambda run: enter(run, way)
    return lambda run: way(run) if passes(run) else enter(run, way)
