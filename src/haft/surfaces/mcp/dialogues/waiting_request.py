"""One request of a client that waits for a run: asks the client what the run asks, and decides when to return.

Since 2026-07-28, a question is a result `input_required`: the client repeats its request with the answers and with a
state that names the run. Before, a question is a request of the server (elicitation) while the call waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from haft.contracts import Outcome
from haft.surfaces.mcp.calls import CallRequest, ProgressReport, wants_events
from haft.surfaces.mcp.dialogues.carried_state import CarriedState, carried_state
from haft.surfaces.mcp.dialogues.clients import Client
from haft.surfaces.mcp.dialogues.dialogue import AskedRequest, key_of, keys_of
from haft.surfaces.mcp.dialogues.missing_capabilities import missing_answers
from haft.surfaces.mcp.results import RUN_KEY, STATUS_KEY, text_result

if TYPE_CHECKING:
    from haft.surfaces.mcp.dialogues.waiting_calls import WaitingCalls, WaitingRun

QUICK_SECONDS: Final = 0.02
TOGETHER_SECONDS: Final = 0.25
"""How long questions that are asked at once may take to arrive."""
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
        self._left: set[str] = set()
        """The requests that this client left in the inbox."""
        self._asking: dict[str, asyncio.Task[None]] = {}
        """The questions that are asked as requests of the server."""
        self._offered: dict[str, Any] = {}
        """Answers that the client sent before it was asked, by their keys. They answer only questions of tools."""
        self._carried: dict[str, Any] = {}
        """Answers to questions of a run that is gone, by the digests of the questions."""

    async def result(self) -> Outcome | dict[str, Any]:
        """The outcome, or another result of the request."""
        if self._may_be_task and self._waiting.task_support == "optional":
            return self._task()
        self._take_answers()
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
            for task in (outcome, reporting, *self._asking.values()):
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
            self._use_known_answers()
            askable = self._askable()
            if self._client.is_modern:
                askable = await self._all_together(askable)
                if askable:
                    return self._input_required(askable)
            else:
                self._elicit(askable)
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
            waits_for: set[asyncio.Future[Any]] = {outcome, woken, *self._asking.values()}
            try:
                timeout = max(0.0, until - now)
                await asyncio.wait(waits_for, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                woken.cancel()
        return None

    # Answers of the client.

    def _take_answers(self) -> None:
        """Take the answers that came with the request."""
        given = self._request.params.get("inputResponses")
        responses = dict(given) if isinstance(given, Mapping) else {}
        state = carried_state(self._request.params)
        if state is None:
            self._offered = responses
            return
        self._left = set(state.left)
        shows_person = time.time() - state.at >= self._calls.shortest_answer
        for key, name in state.asked.items():
            if key not in responses:
                continue
            if state.run != self._run.id:
                self._carried[state.seen[key]] = responses[key]
                continue
            asked = self._dialogue.find(self._run.id, name)
            if asked is not None:
                self._take(asked, responses[key], shows_person=shows_person)

    def _take(self, asked: AskedRequest, response: Any, *, shows_person: bool) -> None:
        reading = asked.take(response, self._client, shows_person=shows_person)
        if reading.kind == "leave":
            self._left.add(asked.name)

    def _use_known_answers(self) -> None:
        """Answer the open questions whose answers came with the request."""
        if not self._offered and not self._carried:
            return
        for asked in self._askable():
            question = asked.request.question
            if question is not None and (key := key_of(question)) in self._offered:
                self._take(asked, self._offered.pop(key), shows_person=True)
            elif question is None and (digest := asked.digest()) in self._carried:
                self._take(asked, self._carried.pop(digest), shows_person=True)

    def _askable(self) -> list[AskedRequest]:
        found = self._dialogue.askable(self._run.id, self._client)
        return [asked for asked in found if asked.name not in self._left]

    # Questions to the client.

    def _input_required(self, askable: list[AskedRequest]) -> dict[str, Any]:
        """The questions as a result of the request."""
        keyed = keys_of(askable)
        state = CarriedState(
            self._run.id,
            {key: asked.name for key, asked in keyed.items()},
            {key: asked.digest() for key, asked in keyed.items()},
            tuple(self._left),
            time.time(),
        )
        forms = {key: asked.form() for key, asked in keyed.items()}
        return {"resultType": "input_required", "inputRequests": forms, "requestState": state.to_text()}

    async def _all_together(self, askable: list[AskedRequest]) -> list[AskedRequest]:
        """The questions, after those that are asked together with them have arrived."""
        until = time.monotonic() + TOGETHER_SECONDS
        while (left := until - time.monotonic()) > 0 and _are_more_to_come(askable):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._dialogue.news(self._run.id).wait(), left)
            self._use_known_answers()
            askable = self._askable()
        return askable

    def _elicit(self, askable: list[AskedRequest]) -> None:
        """Ask the questions as requests of the server, and withdraw those that were answered elsewhere."""
        wanted = {asked.name: asked for asked in askable}
        for name, task in list(self._asking.items()):
            if name not in wanted or task.done():
                task.cancel()
                del self._asking[name]
        for name, asked in wanted.items():
            if name not in self._asking:
                self._asking[name] = asyncio.create_task(self._ask(asked))

    async def _ask(self, asked: AskedRequest) -> None:
        form, began = asked.form(), time.monotonic()
        assert form is not None
        try:
            response = await send_question(self._request, form)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # The client refused the question, or answered with something else.
            question = asked.request.question
            if question is None or question.is_for_person:
                self._left.add(asked.name)
            else:
                asked.refuse(self._client, str(error))
            return
        self._take(asked, response, shows_person=time.monotonic() - began >= self._calls.shortest_answer)

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


async def send_question(request: CallRequest, form: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the client with a request of the server, and return the result as MCP writes it."""
    kinds: dict[str, tuple[Any, Any]] = {
        "elicitation/create": (types.ElicitRequest, types.ElicitResult),
        "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
        "roots/list": (types.ListRootsRequest, types.ListRootsResult),
    }
    kind, result = kinds[form["method"]]
    context = request.context
    asked = kind.model_validate(dict(form), by_name=False)
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    given = await context.session.send_request(asked, result, metadata=metadata)
    answer: dict[str, Any] = given.model_dump(by_alias=True, mode="json", exclude_none=True)
    return answer


def _are_more_to_come(askable: list[AskedRequest]) -> bool:
    groups: dict[str, int] = {}
    for asked in askable:
        if asked.request.together is not None:
            groups[asked.request.together[0]] = groups.get(asked.request.together[0], 0) + 1
    return any(
        asked.request.together is not None and groups[asked.request.together[0]] < asked.request.together[1]
        for asked in askable
    )


async def _outcome_of(run: Awaitable[Outcome]) -> Outcome:
    return await run
