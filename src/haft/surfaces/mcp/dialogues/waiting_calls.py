"""Calls that wait: for a person, or for a tool that takes long.

While a call waits, its client gets progress, and the questions of the call that the client can answer
(`waiting_request`). If the client would give up before somebody answers, the call returns early: it says that it waits
and how to go on. The run waits on, and the same call, repeated by the same client, joins it. Calls that are in flight
at once never share a run.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from haft.contracts import BadUsage, BatchId, HaftError, Outcome, RunId, outcome_from
from haft.service import RunRecord
from haft.surfaces.mcp.calls import CallRequest, wants_progress
from haft.surfaces.mcp.dialogues.carried_state import carried_state
from haft.surfaces.mcp.dialogues.clients import Client, client_of
from haft.surfaces.mcp.dialogues.dialogue import SHORTEST_ANSWER, Dialogue
from haft.surfaces.mcp.dialogues.missing_capabilities import missing_tasks
from haft.surfaces.mcp.dialogues.waiting_batch import wait_for_batch
from haft.surfaces.mcp.dialogues.waiting_request import WAITING_CODE, WaitingRequest

if TYPE_CHECKING:
    from haft.service import BatchRun, Run, ToolService

PROGRESS_SECONDS: Final = 10.0
"""How often a waiting client is told that its call waits."""
TASK_SECONDS: Final = 10.0
"""After this time, a call becomes a task, if its client knows tasks."""
REQUIRED_TASK_SECONDS: Final = 2.0
"""How long a tool that always runs as a task may first ask questions, or end."""
JOINABLE_SECONDS: Final = 600.0
"""How long a repeated call gets the outcome of a run that has ended meanwhile."""
MOST_KEPT: Final = 1000


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
        self._batches: dict[BatchId, tuple[BatchRun, Client]] = {}
        """The batches that clients wait for, or have waited for, each with the client of its last request."""
        self.new_task: Callable[[WaitingRun], dict[str, Any]] | None = None
        """Makes the result of a call that becomes a task; None if this server has no tasks."""
        dialogue.answerable_of = self._answerable

    def _answerable(self, run: RunId) -> frozenset[str]:
        """The kinds of questions that the client which waits for a run answers. A run that another run made asks the
        client of the outermost one."""
        live = self.service.runs.live(run)
        while live is not None and live.parent is not None:
            live = live.parent
        if live is None:
            return frozenset()
        if (waiting := self.runs.get(live.id)) is not None:
            return waiting.client.answers
        known = None if live.call.batch is None else self._batches.get(BatchId(live.call.batch))
        return frozenset() if known is None else known[1].answers

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
        name = RunId(state.run)
        known = self.runs.get(name)
        if known is not None:
            return known.run
        live = self.service.runs.live(name)
        return live if live is not None else await self._recorded(name)

    async def _recorded(self, run: RunId) -> Outcome | None:
        """The outcome of a run of an earlier process; None if the run did nothing before that process ended, so that
        the call can start anew."""
        try:
            record = await self.service.runs.get(run)
        except HaftError:
            return None
        if not isinstance(record, RunRecord):
            return None
        began = any(event.status == "in-progress" for event in record.states())
        if record.is_open and began:
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
            return await WaitingRequest(self, request, waiting, client).result()
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

    # Batches.

    def join_batch(self, request: CallRequest) -> BatchRun | None:
        """The batch that this request goes on with; None if it starts a new one. Raises `BadUsage` if the batch is of
        an earlier process: some of its calls may have run, so it is not made again."""
        state = carried_state(request.params)
        if state is None:
            return None
        known = self._batches.get(BatchId(state.run))
        if known is None:
            hint = "`runs` lists its calls; make those again that did not run"
            raise BadUsage(f"the server that made the batch {state.run} has ended", hint=hint)
        return known[0]

    async def wait_batch(self, request: CallRequest, batch: BatchRun, seconds: float | None) -> dict[str, Any] | None:
        """Wait for a batch, and ask the client what its calls ask. Returns a result that asks the client, or None if
        the calls or the wait have ended. If the client cancels its request, all calls are cancelled."""
        client = self.client_of(request)
        if len(self._batches) >= MOST_KEPT:
            for name in [name for name, (each, _) in self._batches.items() if has_ended(each)]:
                self._forget_batch(name)
        self._batches[batch.id] = batch, client
        self.dialogue.add_batch(batch.id, [run.id for run in batch.runs])
        try:
            asked = await wait_for_batch(self, request, batch, client, seconds)
        except asyncio.CancelledError:
            batch.cancel(request.caller)
            raise
        if asked is None and has_ended(batch):
            self._forget_batch(batch.id)
        return asked

    def _forget_batch(self, batch: BatchId) -> None:
        del self._batches[batch]
        self.dialogue.forget(batch)

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


def has_ended(batch: BatchRun) -> bool:
    """Whether all calls of the batch have ended."""
    return all(run.outcome is not None for run in batch.runs)


def call_key(request: CallRequest) -> tuple[str, str, str, str]:
    """What makes two calls the same: the client, its thread, the tool and the arguments."""
    arguments = json.dumps(dict(request.arguments), sort_keys=True, default=str)
    return request.caller.who, str(request.caller.thread), request.tool, arguments
