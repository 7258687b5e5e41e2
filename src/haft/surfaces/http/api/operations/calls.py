"""Calls of tools, one or many at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from haft.contracts import BadUsage, RunId, UnknownTool
from haft.service import RunRecord, read_calls
from haft.surfaces.http.api.endings import ending_of
from haft.surfaces.http.api.idempotency import once

if TYPE_CHECKING:
    from haft.service import Run
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

RESUMED: Final = "http"
"""The key of the calls that the next server goes on with, if they wait for a person when this one ends."""


async def call_tool(ask: Ask, given: CallGiven) -> Outcome:
    """Call a tool, and wait for the end of the call as long as the request says. If the client goes away meanwhile, the
    call goes on."""
    _require_tool(ask, given.tool)
    ids = None if given.run_id is None else [given.run_id]
    [run] = await once(ask, "callTool", given, 1, lambda ids: [start_call(ask, given, *ids)], ids=ids)
    return cast("Outcome", (await ending_of(ask, run, given.wait)).shape)


def start_call(ask: Ask, given: CallGiven, run_id: RunId | None = None) -> Run:
    """Start a call. Its tool must be one that the identity may call."""
    if given.parent is not None:
        above = ask.service.runs.live(given.parent)
        if above is None or above.call.who != ask.identity.name:
            raise BadUsage(f"`{given.parent}` cannot be the parent of a call: it is not a live run of yours")
    is_resumed = ask.server.resumes and not given.pauses  # A client that asks for a pause goes on with it itself.
    return ask.service.call(
        given.tool,
        given.args,
        **_options(ask, given),
        parent=given.parent,
        trial=given.trial,
        claim=given.claim,
        pauses=given.pauses or is_resumed,
        key=RESUMED if is_resumed else None,
        run_id=run_id,
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


async def start_batch(ask: Ask, given: BatchGiven) -> BatchAnswer:
    """Make several calls at once, with the effects of their order."""
    for call in given.calls:
        _require_tool(ask, call.tool)
    calls = [call.to_call() for call in given.calls]
    names = [call.id for call in read_calls(calls)]

    def start(ids: Sequence[RunId]) -> Sequence[Run]:
        return ask.service.batches.start(calls, run_ids=ids, **_options(ask, given)).runs

    runs = await once(ask, "startBatch", given, len(calls), start, ids=given.run_ids)
    until = time.monotonic() + given.wait
    ends = [await ending_of(ask, run, max(0.0, until - time.monotonic())) for run in runs]
    return {
        "batch": _batch_of(runs[0]),
        "ended": all(end.has_ended for end in ends),
        "outcomes": [cast("BatchOutcome", {"id": name, **end.shape}) for name, end in zip(names, ends, strict=False)],
    }


def _batch_of(run: Run | RunRecord) -> str:
    return str(run.batch if isinstance(run, RunRecord) else run.call.batch)


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
