"""Combines the stages into one function. Each stage gets the stages after it as `proceed`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from haft.contracts import Outcome
from haft.pipeline.run import Run

Proceed = Callable[[Run], Awaitable[Outcome]]


class Stage(Protocol):
    """Stops, changes or watches one call. A stage that changes the call replaces `run.call`."""

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome: ...

    # A stage that many calls do not need may have a method `skips(run) -> bool`. If `skips` returns true, the call goes
    # straight to the next stage.


async def _no_stage_left(run: Run) -> Outcome:
    raise AssertionError(f"no stage ended the call of {run.call.name}")


def fold(stages: Sequence[Stage]) -> Proceed:
    """Return one function that runs all stages, from the first to the last."""
    proceed: Proceed = _no_stage_left
    for stage in reversed(stages):
        proceed = _prepend(stage, proceed)
    return proceed


def _prepend(stage: Stage, proceed: Proceed) -> Proceed:
    """Return a function that runs the stage, which then runs `proceed`."""
    enter = stage.__call__
    skips: Callable[[Run], bool] | None = getattr(stage, "skips", None)
    if skips is None:
        return lambda run: enter(run, proceed)
    return lambda run: proceed(run) if skips(run) else enter(run, proceed)
