"""Calls of tools, one or many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from haft.contracts import BadUsage, RunId, UnknownTool

if TYPE_CHECKING:
    from haft.contracts import Outcome as EndOfRun
    from haft.service import BatchRun
    from haft.service import Run as PipelineRun
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.calls import (
        BatchAnswer,
        BatchGiven,
        BatchOutcome,
        BatchPlan,
        BatchPlanGiven,
        CallGiven,
        HowGiven,
        Outcome,
    )

T = TypeVar("T")
RESUMED: Final = "http"
"""The key of the calls that the next server goes on with, if they wait for a person when this one ends."""


async def call_tool(ask: Ask, given: CallGiven) -> Outcome:
    """Call a tool, and wait for the end of the call as long as the request says. If the client goes away meanwhile, the
    call goes on."""
    return await outcome_of(ask, start_call(ask, given), given.wait)


def start_call(ask: Ask, given: CallGiven, run_id: RunId | None = None) -> PipelineRun:
    """Start a call."""
    _require_tool(ask, given.tool)
    if given.parent is not None:
        above = ask.service.runs.live(given.parent)
        if above is None or above.call.who != ask.identity.name:
            raise BadUsage(f"`{given.parent}` cannot be the parent of a call: it is not a live run of yours")
    outlives: dict[str, Any] = {"pauses": True, "key": RESUMED} if ask.server.resumes else {}
    return ask.service.call(
        given.tool,
        given.args,
        **_options(ask, given),
        parent=given.parent,
        trial=given.trial,
        run_id=run_id,
        **outlives,
    )


def _options(ask: Ask, given: HowGiven) -> dict[str, Any]:
    return {
        "who": ask.identity.principal(given.thread),
        "timeout": given.timeout,
        "cwd": given.cwd,
        "env": given.env,
        "config": given.config,
        "grants": given.grants,
        "isolation": given.isolation,
        "uses_cache": given.uses_cache,
    }


async def outcome_of(ask: Ask, run: PipelineRun, seconds: float) -> Outcome:
    """The outcome of a run; if it does not end in so many seconds, as far as it is known. In that case the run is
    stored before its id is given away."""
    ended = await ended_within(_end_of(run), seconds)
    if ended is None:
        return cast("Outcome", (await ask.service.runs.record(run.id)).outcome)
    return cast("Outcome", ended.to_json())


async def _end_of(run: PipelineRun) -> EndOfRun:
    return await run


async def ended_within(awaited: Awaitable[T], seconds: float) -> T | None:
    """What is awaited; None if it takes longer than so many seconds. Only the waiting is cancelled."""
    task = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
        return task.result() if done else None
    finally:
        task.cancel()


async def start_batch(ask: Ask, given: BatchGiven) -> BatchAnswer:
    """Make several calls at once, with the effects of their order."""
    return await outcomes_of(ask, start_calls(ask, given), given.wait)


def start_calls(ask: Ask, given: BatchGiven, run_ids: list[RunId] | None = None) -> BatchRun:
    """Start the calls of a batch."""
    for call in given.calls:
        _require_tool(ask, call.tool)
    calls = [call.to_call() for call in given.calls]
    return ask.service.batches.start(calls, run_ids=run_ids or (), **_options(ask, given))


async def outcomes_of(ask: Ask, batch: BatchRun, seconds: float) -> BatchAnswer:
    """The outcomes of a batch, as far as they are known in so many seconds."""
    await ended_within(_ends_of(batch), seconds)
    outcomes: list[BatchOutcome] = []
    for name, run in zip(batch.ids, batch.runs, strict=True):
        shape = (await ask.service.runs.record(run.id)).outcome if run.outcome is None else run.outcome.to_json()
        outcomes.append(cast("BatchOutcome", {"id": name, **shape}))
    return {"batch": batch.id, "ended": all(run.outcome is not None for run in batch.runs), "outcomes": outcomes}


async def _ends_of(batch: BatchRun) -> list[EndOfRun]:
    return await batch


async def plan_batch(ask: Ask, given: BatchPlanGiven) -> BatchPlan:
    """The order in which the calls of a batch would run. Calls no tool, and asks nobody."""
    calls = [call.to_call() for call in given.calls]
    thread = None if given.thread is None else ask.identity.principal(given.thread).thread
    plan = await ask.service.plan_batch(calls, thread=thread, cwd=given.cwd)
    return cast("BatchPlan", plan.to_json())


def _require_tool(ask: Ask, tool: str) -> None:
    if not ask.identity.may_call(tool):
        known = [each.spec.name for each in ask.service.tools() if ask.identity.may_call(each.spec.name)]
        raise UnknownTool(tool, known)
