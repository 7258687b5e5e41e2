"""One request of a client that waits for a run: asks the client what the run asks, and decides when to return.

`questions` asks. This module decides how long the request waits, and what its result is.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from haft.contracts import Outcome
from haft.surfaces.mcp.calls import CallRequest, ProgressReport, wants_events
from haft.surfaces.mcp.dialogues.clients import Client
from haft.surfaces.mcp.dialogues.missing_capabilities import missing_answers
from haft.surfaces.mcp.dialogues.questions import Questions
from haft.surfaces.mcp.results import RUN_KEY, STATUS_KEY, text_result

if TYPE_CHECKING:
    from haft.surfaces.mcp.dialogues.waiting_calls import WaitingCalls, WaitingRun

QUICK_SECONDS: Final = 0.02
WAITING_CODE: Final = -32000
"""The code of the error for a request that cannot say that its run waits, because it is no call."""


class WaitingRequest:
    """One request that waits for a run."""

    def __init__(self, calls: WaitingCalls, request: CallRequest, waiting: WaitingRun, client: Client) -> None:
        self._calls = calls
        self._dialogue = calls.dialogue
        self._request = request
        self._waiting = waiting
        self._run = waiting.run
        self._client = client
        self._is_call = request.context.method == "tools/call"
        self._may_be_task = self._is_call and client.has_tasks and not request.joined
        self._wants_events = wants_events(request)
        self._began = time.monotonic()
        self._questions = Questions(calls, request, waiting.run.id, client)

    async def result(self) -> Outcome | dict[str, Any]:
        """The outcome, or another result of the request."""
        if self._may_be_task and self._waiting.task_support == "optional":
            return self._task()
        self._questions.take_answers()
        if not self._wants_events:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUICK_SECONDS):  # Most calls end here, and need nothing of the rest.
                    return self._ended(await self._run)
        outcome = asyncio.ensure_future(_outcome_of(self._run))
        report = ProgressReport(self._request)
        reporting = asyncio.create_task(report.follow(self._run)) if self._wants_events else None
        try:
            ended = await self._wait(outcome, report)
            if ended is None:  # The run has ended: report all progress before its outcome.
                if reporting is not None:
                    await reporting
                return self._ended(await outcome)
            return ended
        finally:
            for task in (outcome, reporting, *self._questions.asking.values()):
                if task is not None:
                    task.cancel()

    def _ended(self, outcome: Outcome) -> Outcome | dict[str, Any]:
        if self._may_be_task and self._waiting.task_support == "required":
            return self._task()
        self._calls.delivered(self._run.id)
        if self._client.is_modern and outcome.error is not None and self._run.unanswerable:
            raise missing_answers(outcome, self._run.unanswerable)
        return outcome

    async def _wait(self, outcome: asyncio.Future[Outcome], report: ProgressReport) -> dict[str, Any] | None:
        """Wait until the run has ended (None), or the request has another result."""
        progress_at = self._began + self._calls.progress_seconds
        while not outcome.done():
            news = self._dialogue.news(self._run.id)
            if (asked := await self._questions.ask()) is not None:
                return asked
            if news.is_set():
                continue
            now = time.monotonic()
            if (result := self._early_result(now)) is not None:
                return result
            if now >= progress_at:
                progress_at = now + self._calls.progress_seconds
                await report.say(self._state_in_words())
            until = min([progress_at, *self._times()])
            woken = asyncio.ensure_future(news.wait())
            waits_for: set[asyncio.Future[Any]] = {outcome, woken, *self._questions.asking.values()}
            try:
                timeout = max(0.0, until - now)
                await asyncio.wait(waits_for, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                woken.cancel()
        return None

    # Results before the end of the run.

    def _limit(self) -> float | None:
        """When the request must get a result, as a monotonic time."""
        seconds = self._calls.limit(self._client)
        waits = bool(self._dialogue.open(self._run.id)) or self._run.status == "blocked-on-user"
        # A guess must not cut off a tool that works.
        return None if seconds is None or not (waits or self._client.is_known) else self._began + seconds

    def _times(self) -> list[float]:
        """When this request may get a result before the end of the run."""
        found = [self._task_time(), self._limit()]
        return [at for at in found if at is not None]

    def _task_time(self) -> float | None:
        if not self._may_be_task or self._calls.new_task is None or self._waiting.task_support == "forbidden":
            return None
        is_required = self._waiting.task_support == "required"
        return self._began + (self._calls.required_task_seconds if is_required else self._calls.task_seconds)

    def _early_result(self, now: float) -> dict[str, Any] | None:
        task_at, limit = self._task_time(), self._limit()
        if task_at is not None and (now >= task_at or self._dialogue.open(self._run.id)):
            return self._task()  # A question that this client could answer came before, as `input_required`.
        if limit is not None and now >= limit:
            return self._waits()
        return None

    def _task(self) -> dict[str, Any]:
        assert self._calls.new_task is not None
        return self._calls.new_task(self._waiting)

    def _waits(self) -> dict[str, Any]:
        """The result of a call that returns while its run waits."""
        self._waiting.returned_early = self._is_call
        run, status = self._run.id, self._run.status
        text = (
            f"[haft] run {run}: {self._state_in_words()}. It has not ended. `wait` with this run goes on waiting; so "
            f"does the same call again. Do not start other work that needs its result."
        )
        if not self._is_call:
            raise MCPError(code=WAITING_CODE, message=text, data={"run": run, "status": status})
        result = text_result(text, {"run": run, "status": status, "notes": [text]})
        result["_meta"] = {RUN_KEY: run, STATUS_KEY: status}
        return result

    def _state_in_words(self) -> str:
        asked = self._dialogue.open(self._run.id)
        if not asked:
            waits = self._run.status == "blocked-on-user"
            return "waiting for approval" if waits else f"{self._run.status}, and it goes on"
        request = asked[0].request
        if request.question is not None:
            return "waiting for a person's answer to a question of the tool; the question is in haft's inbox"
        return f"waiting for approval by a person, in haft's inbox: {request.reason}"


async def _outcome_of(run: Awaitable[Outcome]) -> Outcome:
    return await run
