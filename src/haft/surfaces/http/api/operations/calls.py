"""Calls of tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from haft.contracts import UnknownTool
from haft.surfaces.http.api.types.calls import CallGiven, Outcome

if TYPE_CHECKING:
    from haft.contracts import Outcome as PipelineOutcome
    from haft.service import Run as PipelineRun
    from haft.surfaces.http.api.ask import Ask


async def call_tool(ask: Ask, given: CallGiven) -> Outcome:
    """Call a tool, and wait for the end of the call as long as the request says. If the client goes away meanwhile, the
    call goes on."""
    if not ask.identity.may_call(given.tool):
        raise UnknownTool(given.tool, ())
    run = ask.service.call(
        given.tool,
        given.args,
        who=ask.identity.principal(given.thread),
        timeout=given.timeout,
        cwd=given.cwd,
        env=given.env,
        grants=given.grants,
        trial=given.trial,
    )
    waiting = asyncio.ensure_future(_outcome(run))
    done, _ = await asyncio.wait([waiting], timeout=given.wait)
    if done:
        return cast("Outcome", waiting.result().to_json())
    waiting.cancel()
    found = (await ask.service.runs.find(limit=1, before=f"{run.id}\x00"))[0]
    return cast("Outcome", found.outcome)


async def _outcome(run: PipelineRun) -> PipelineOutcome:
    return await run
