"""Calls that wait: for a person, or for a tool that takes long.

While a call waits, its client gets progress, and the questions of the call that the client can answer. If the client
would give up before somebody answers, the call returns early: it says that it waits and how to go on. The run waits on,
and the same call, repeated by the same client, joins it. Calls that are in flight at once never share a run.

A question is a result `input_required` since 2026-07-28: the client repeats its request with the answers and with a
state that names the run. Before, a question is a request of the server (elicitation) while the call waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError, Outcome, RunId, outcome_from
from haft.surfaces.mcp.calls import CallRequest, ProgressReport, wants_events, wants_progress
from haft.surfaces.mcp.clients import TASKS, Client, client_of
from haft.surfaces.mcp.dialogue import SHORTEST_ANSWER, AskedRequest, Dialogue, key_of, keys_of
from haft.surfaces.mcp.results import RUN_KEY, STATUS_KEY, text_result
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.service import Run, ToolService

PROGRESS_SECONDS: Final = 10.0
"""How often a waiting client is told that its call waits."""
QUICK_SECONDS: Final = 0.02
TOGETHER_SECONDS: Final = 0.25
"""How long questions that are asked at once may take to arrive."""
TASK_SECONDS: Final = 10.0
"""After this time, a call becomes a task, if its client knows tasks."""
REQUIRED_TASK_SECONDS: Final = 2.0
"""How long a tool that always runs as a task may first ask questions, or end."""
JOINABLE_SECONDS: Final = 600.0
"""How long a repeated call gets the outcome of a run that has ended meanwhile."""
MOST_KEPT: Final = 1000
MISSING_CAPABILITY: Final = -32021
WAITING_CODE: Final = -32000
CAPABILITIES: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The capability that a client declares to answer a kind of question."""


class WaitingRun:
    """A run that a client waits for, or has waited for."""

    def __init__(self, run: Run, request: CallRequest, client: Client) -> None:
        self.run = run
        self.request = request
        """The request that started the run."""
        self.client = client
        """The client as it was at its last request."""
        self.requests = 0
        """How many requests wait for the run."""
        self.returned_early = False
        """Whether the client was told that the run waits, so that the same call joins it."""
        self.is_task = False
        self.left: set[str] = set()
        """For a task: the requests that the client left in the inbox."""
        self.task_support = ""
        self.created_at = self.changed_at = time.time()


@dataclass(frozen=True, slots=True)
class CarriedState:
    """What a request state says."""

    run: RunId
    asked: Mapping[str, str]
    """The ids of the requests, by the keys of the questions."""
    seen: Mapping[str, str]
    """The digests of the questions, by their keys."""
    left: tuple[str, ...]
    """The requests that this client left in the inbox."""
    at: float

    def to_text(self) -> str:
        form = {"run": self.run, "asked": dict(self.asked), "seen": dict(self.seen), "left": list(self.left)}
        return json.dumps({**form, "at": self.at})


def carried_state(params: Mapping[str, Any]) -> CarriedState | None:
    """The state that a request carries; None if it carries none. The state is sealed, so it is one of haft's own."""
    text = params.get("requestState")
    if not isinstance(text, str):
        return None
    form = json.loads(text)
    return CarriedState(RunId(form["run"]), form["asked"], form["seen"], tuple(form["left"]), form["at"])


class WaitingCalls:
    """The runs that clients of one server wait for."""

    def __init__(
        self,
        service: ToolService,
        dialogue: Dialogue,
        *,
        shortest_answer: float = SHORTEST_ANSWER,
        limit: Callable[[Client], float | None] = lambda client: client.limit,
        progress_seconds: float = PROGRESS_SECONDS,
        task_seconds: float = TASK_SECONDS,
        required_task_seconds: float = REQUIRED_TASK_SECONDS,
    ) -> None:
        self.service = service
        self.dialogue = dialogue
        self.shortest_answer = shortest_answer
        self.limit = limit
        self.progress_seconds = progress_seconds
        self.task_seconds = task_seconds
        self.required_task_seconds = required_task_seconds
        self.runs: dict[RunId, WaitingRun] = {}
        self.new_task: Callable[[WaitingRun], dict[str, Any]] | None = None
        """Makes the result of a call that becomes a task; None if this server has no tasks."""
        dialogue.answerable_of = self._answerable

    def _answerable(self, run: RunId) -> frozenset[str]:
        """The kinds of questions that the client which waits for a run answers. A run that another run made asks the
        client of the outermost one."""
        live = self.service.runs.live(run)
        while live is not None and live.parent is not None:
            live = live.parent
        waiting = None if live is None else self.runs.get(live.id)
        return frozenset() if waiting is None else waiting.client.answers

    # Before a run starts.

    async def join(self, request: CallRequest) -> Run | Outcome | None:
        """The run that this request goes on with, or the outcome of that run; None if the request starts a new run."""
        state = carried_state(request.params)
        if state is None:
            self._check_tasks(request)
            waiting = self._joinable(request)
            if waiting is None:
                return None
            waiting.returned_early = False
            return waiting.run
        known = self.runs.get(state.run)
        if known is not None:
            return known.run
        live = self.service.runs.live(state.run)
        return live if live is not None else await self._recorded(state.run)

    async def _recorded(self, run: RunId) -> Outcome | None:
        """The outcome of a run of an earlier process; None if the run did nothing before that process ended, so that
        the call can start anew."""
        from haft.service import RunRecord

        try:
            record = await self.service.runs.get(run)
        except HaftError:
            return None
        if not isinstance(record, RunRecord):
            return None
        began = any(event.status == "in-progress" for event in record.states())
        if record.is_open and began:
            from mcp.shared.exceptions import MCPError

            message = f"run {run} is in progress in another server of haft: `wait` with this run waits for its result"
            raise MCPError(code=WAITING_CODE, message=message, data={"run": run, "status": record.status})
        if record.is_open:
            return None
        gone = record.status == "cancelled" or (record.outcome["error"] or {}).get("code") == "interrupted"
        return None if gone and not began else outcome_from(record.outcome)

    def _joinable(self, request: CallRequest) -> WaitingRun | None:
        early = [waiting for waiting in self.runs.values() if waiting.returned_early and waiting.requests == 0]
        key, now = call_key(request) if early else None, time.time()
        for waiting in early:
            if call_key(waiting.request) == key:
                ended = waiting.run.outcome
                if ended is None or now - (ended.started_at + ended.duration) < JOINABLE_SECONDS:
                    return waiting
        return None

    def task_support(self, tool: str) -> str:
        """What the tool declares: `required`, `optional`, `forbidden`, or nothing."""
        listing = self.service.catalogue.listing(tool)
        return "" if listing is None else str(listing.spec.meta.get("taskSupport", ""))

    def _check_tasks(self, request: CallRequest) -> None:
        """Refuse a call of a tool that always runs as a task, if the client could declare tasks, and does not."""
        if self.task_support(request.tool) != "required":
            return
        client = self.client_of(request)
        if client.is_modern and not client.has_tasks:
            raise missing_tasks(f"`{request.tool}` runs only as a task")

    def client_of(self, request: CallRequest) -> Client:
        """The client that makes a request."""
        return client_of(request.context, request.caller.who, has_token=wants_progress(request.params))

    # While a run waits.

    async def wait(self, request: CallRequest, run: Run) -> Outcome | dict[str, Any]:
        """Wait for the run on behalf of its call. If the client cancels its request, the run is cancelled."""
        try:
            return await self._waited(request, run)
        except asyncio.CancelledError:
            waiting = self.runs.get(run.id)
            if not request.joined and (waiting is None or not waiting.is_task):
                run.cancel(request.caller)
            raise

    async def _waited(self, request: CallRequest, run: Run) -> Outcome | dict[str, Any]:
        if run.outcome is not None:
            self.delivered(run.id)
            return run.outcome
        client = self.client_of(request)
        waiting = self._track(request, run, client)
        waiting.requests += 1
        try:
            return await Wait(self, request, waiting, client).result()
        finally:
            waiting.requests -= 1

    def _track(self, request: CallRequest, run: Run, client: Client) -> WaitingRun:
        waiting = self.runs.get(run.id)
        if waiting is None:
            self._prune()
            waiting = self.runs[run.id] = WaitingRun(run, request, client)
            waiting.task_support = self.task_support(request.tool)
        waiting.client = client
        waiting.returned_early = False
        return waiting

    def delivered(self, run: RunId) -> None:
        """Note that a client has the outcome of a run."""
        waiting = self.runs.get(run)
        if waiting is not None and not waiting.is_task:
            del self.runs[run]
            self.dialogue.forget(run)

    def _prune(self) -> None:
        """Forget the oldest runs that have ended, if there are too many."""
        if len(self.runs) < MOST_KEPT:
            return
        ended = [run for run, waiting in self.runs.items() if waiting.run.outcome is not None and not waiting.requests]
        for run in ended[: max(1, len(ended) // 2)]:
            del self.runs[run]
            self.dialogue.forget(run)


class Wait:
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
            from mcp.shared.exceptions import MCPError

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
    import mcp_types as types
    from mcp.shared.message import ServerMessageMetadata

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


def missing_tasks(message: str) -> Exception:
    """The error for a client that did not declare the tasks extension."""
    from mcp.shared.exceptions import MCPError

    required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return MCPError(code=MISSING_CAPABILITY, message=f"{message}: declare the extension {TASKS}", data=required)


def missing_answers(outcome: Outcome, methods: Collection[str]) -> Exception:
    """The error of a call that failed after its tool asked what the client did not declare that it can answer."""
    from mcp.shared.exceptions import MCPError

    required: dict[str, Any] = {CAPABILITIES[method]: {} for method in sorted(methods) if method in CAPABILITIES}
    reason = "" if outcome.error is None else f": {outcome.error.message}"
    return MCPError(
        code=MISSING_CAPABILITY,
        message=f"`{outcome.tool}` needs a client that answers {', '.join(sorted(methods))}{reason}",
        data={"requiredCapabilities": required, "run": outcome.run_id},
    )


def _are_more_to_come(askable: list[AskedRequest]) -> bool:
    groups: dict[str, int] = {}
    for asked in askable:
        if asked.request.together is not None:
            groups[asked.request.together[0]] = groups.get(asked.request.together[0], 0) + 1
    return any(
        asked.request.together is not None and groups[asked.request.together[0]] < asked.request.together[1]
        for asked in askable
    )


def call_key(request: CallRequest) -> tuple[str, str, str, str]:
    """What makes two calls the same: the client, its thread, the tool and the arguments."""
    arguments = json.dumps(dict(request.arguments), sort_keys=True, default=str)
    return request.caller.who, str(request.caller.thread), request.tool, arguments


async def _outcome_of(run: Awaitable[Outcome]) -> Outcome:
    return await run
