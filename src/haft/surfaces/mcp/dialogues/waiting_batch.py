"""One request of a client that waits for a batch: asks the client what its calls ask, until they end or time is up."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

from haft.surfaces.mcp.calls import LONGEST_WAIT, CallRequest, ProgressReport, wants_events
from haft.surfaces.mcp.dialogues.clients import Client
from haft.surfaces.mcp.dialogues.questions import Questions

if TYPE_CHECKING:
    from haft.service import BatchRun
    from haft.surfaces.mcp.dialogues.waiting_calls import WaitingCalls


async def wait_for_batch(
    calls: WaitingCalls, request: CallRequest, batch: BatchRun, client: Client, seconds: float | None
) -> dict[str, Any] | None:
    """Returns a result that asks the client; None if the batch has ended, or the time is up. Without `seconds`, a
    question to a person has as long as the client waits."""
    questions = Questions(calls, request, batch.id, client)
    questions.take_answers()
    outcomes = asyncio.ensure_future(_outcomes(batch))
    report = ProgressReport(request)
    reporting = asyncio.create_task(report.follow(batch)) if wants_events(request) else None
    began = time.monotonic()
    progress_at = began + calls.progress_seconds
    try:
        while not outcomes.done():
            news = calls.dialogue.news(batch.id)
            if (asked := await questions.ask()) is not None:
                return asked
            if news.is_set():
                continue
            now = time.monotonic()
            until = began + (_default_wait(calls, client, questions) if seconds is None else seconds)
            if now >= until:
                return None
            if now >= progress_at:
                progress_at = now + calls.progress_seconds
                await report.say(f"{sum(run.outcome is None for run in batch.runs)} calls of the batch have not ended")
            woken = asyncio.ensure_future(news.wait())
            waits_for: set[asyncio.Future[Any]] = {outcomes, woken, *questions.asking.values()}
            try:
                timeout = max(0.0, min(progress_at, until) - now)
                await asyncio.wait(waits_for, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                woken.cancel()
        if reporting is not None:
            await reporting
        return None
    finally:
        for task in (outcomes, reporting, *questions.asking.values()):
            if task is not None:
                task.cancel()


def _default_wait(calls: WaitingCalls, client: Client, questions: Questions) -> float:
    if not questions.asking:
        return LONGEST_WAIT
    limit = calls.limit(client)
    return math.inf if limit is None else max(limit, LONGEST_WAIT)


async def _outcomes(batch: BatchRun) -> None:
    await batch
