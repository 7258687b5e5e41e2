"""A run on a server, with the interface of `Run`: await it, iterate over it, cancel it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import (
    TERMINAL,
    ApprovalAnswer,
    BadUsage,
    Event,
    HaftError,
    Outcome,
    RunId,
    Status,
    UnknownRun,
    outcome_from,
)
from haft.service.remote.feed import Feed, run_events
from haft.service.remote.shapes import record_from, request_from
from haft.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from haft.contracts import ApprovalRequest
    from haft.policy import Waiting
    from haft.service.remote.connection import ServerConnection

_ENDS_SECONDS: Final = 10.0
"""How long the end of a cancelled run is awaited when its service closes."""


@dataclass(frozen=True, slots=True)
class RemotePause:
    """A request for approval of a call, or of a call below it, that was made with `pauses=True`."""

    root: RunId
    run: RunId
    request: ApprovalRequest
    outlives_host: bool
    give: Callable[[ApprovalAnswer], asyncio.Task[bool]]

    def answer(self, answer: bool | ApprovalAnswer) -> asyncio.Task[bool]:
        """Answer the request. The task returns False if somebody answered it before."""
        return self.give(answer if isinstance(answer, ApprovalAnswer) else ApprovalAnswer(approved=answer))


@dataclass(slots=True, eq=False)
class RunContext:
    """What the runs of one service share."""

    connection: ServerConnection
    feed: Feed
    path: str
    """The path of the workspace, below `/api/v1`."""
    asked_below: Callable[[RunId], Awaitable[Waiting | None]]
    """What a run, or a run below it, asks a person now."""
    answered: Callable[[Waiting, ApprovalAnswer], Awaitable[bool]]
    """Answers a request. Returns False if somebody answered it before."""


class RemoteRun:
    """One run on a server."""

    def __init__(
        self, context: RunContext, run: RunId | None, tool: str, *, status: Status = "queued", is_own: bool = True
    ) -> None:
        """`run` is None if the server makes the id. `is_own` says whether this service started the run."""
        self._context = context
        self._id = run
        self.tool_name = tool
        self.status: Status = status
        """The status that the server told last."""
        self._outcome: Outcome | None = None
        self._error: HaftError | None = None
        self._ended = asyncio.Event()
        self._begun = asyncio.Event()
        """Set once the server knows the run, or will never know it."""
        self.is_own = is_own
        self._is_heard = not is_own
        """Whether the server has told anything about the run."""
        self._states = 0
        """How many statuses the run has had, as far as it is known: what is stored may be older than a stream."""
        self._starting: asyncio.Task[None] | None = None
        self._cancelling: asyncio.Task[bool] | None = None
        self.pauses = False

    def __repr__(self) -> str:
        return f"<RemoteRun {self._id or 'without an id yet'} {self.tool_name} {self.status}>"

    @property
    def id(self) -> RunId:
        """The id. That of an undo, redo, apply or drop is known once the server has answered: see `accepted`."""
        if self._id is None:
            raise self._error or BadUsage(
                "the server makes the id of this run: `await run.accepted()`, or await the run"
            )
        return self._id

    @property
    def has_id(self) -> bool:
        """Whether the id is known already."""
        return self._id is not None

    @property
    def outcome(self) -> Outcome | None:
        """The outcome; None until it is known here that the run has ended."""
        return self._outcome

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will be learned about the run."""
        return self._ended.is_set()

    # For the service.

    def begin(self, start: Callable[[RemoteRun], Awaitable[None]]) -> None:
        """Start the run: `start` makes the request."""

        async def begin() -> None:
            try:
                await start(self)
            except HaftError as error:
                self.fail(error)
            finally:
                self._begun.set()

        self._starting = asyncio.get_running_loop().create_task(begin())

    def know(self, run: RunId) -> None:
        """The server has told the id."""
        self._id = run
        self._begun.set()

    def take(self, form: Mapping[str, Any]) -> None:
        """The outcome, as far as the server knows it."""
        self._begun.set()
        self.hear(form["status"])
        if form["status"] in TERMINAL:
            self.finish(outcome_from(form))
        else:
            self.follow()

    def follow(self) -> None:
        """Wait for the end of the run."""
        if not self._ended.is_set():
            self._begun.set()
            self._context.feed.follow(self.id, self)

    def hear(self, status: Status, states: int = 0) -> None:
        """The run has this status; it is number `states` of its statuses, if that is known."""
        self._is_heard = True
        if self._outcome is None and states >= self._states:
            self.status, self._states = status, states

    async def refresh(self) -> None:
        """Ask the server how the run is."""
        if not self._ended.is_set():
            record = record_from(await self._context.connection.ask("GET", self._path))
            self.hear(record.status, len(record.states()))
            if not record.is_open:
                self.finish(outcome_from(record.outcome))

    def finish(self, outcome: Outcome) -> None:
        """The run has ended."""
        if self._outcome is None:
            self._outcome, self.status = outcome, outcome.status
            self._end()

    def fail(self, error: HaftError) -> None:
        """It cannot be learned how the run ends, or there is none."""
        if not self._ended.is_set():
            self._error = error
            self._end()

    def _end(self) -> None:
        self._is_heard = True
        self._begun.set()
        self._ended.set()
        if self._id is not None:
            self._context.feed.forget(self._id)

    async def end(self) -> None:
        """Cancel the run, because its service closes."""
        with contextlib.suppress(HaftError, TimeoutError):
            if await self.cancel():
                await asyncio.wait_for(self._ended.wait(), _ENDS_SECONDS)
        await self.abandon()

    async def abandon(self) -> None:
        """Learn nothing more about the run."""
        self.fail(BadUsage(f"the service was closed before {self.tool_name} had ended"))
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)

    # For the caller.

    async def accepted(self) -> None:
        """Wait until the server has the run. Raises the server's error if it refuses."""
        await self._begun.wait()
        if self._id is None and self._error is not None:
            raise self._error

    def __await__(self) -> Generator[Any, None, Outcome]:
        """Wait for the outcome. Cancelling the waiting task does not cancel the run. Raises an error if the server
        refused the request, or cannot be reached any more."""
        return self._wait().__await__()

    async def _wait(self) -> Outcome:
        await self._ended.wait()
        if self._outcome is None:
            assert self._error is not None
            raise self._error
        return self._outcome

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events: the current status first, the outcome last. If nothing is known about the run yet, they are all
        events of the run."""
        return self._events(from_beginning=not self._is_heard)

    async def _events(self, *, from_beginning: bool) -> AsyncIterator[Event]:
        await self.wait_for_id()
        if not from_beginning and self._outcome is None:
            await self.refresh()
        if self._outcome is not None:
            for event in _last_events(self._outcome):
                yield event
            return
        async with contextlib.aclosing(run_events(self._context.connection, self._path, begun=self._begun)) as events:
            first, seen = 0 if from_beginning else self._states, 0
            async for event in events:
                seen += event.type == "status"
                if seen < first:
                    continue
                self.hear(event.status, seen)
                if event.type == "outcome":
                    self.finish(outcome_from(event.facts["outcome"]))
                yield event

    async def wait_for_id(self) -> None:
        """Wait until the id is known. Raises the server's error if it refuses."""
        if self._id is None:
            await self.accepted()

    @property
    def _path(self) -> str:
        return f"{self._context.path}/runs/{self.id}"

    def cancel(self, by: object = None) -> asyncio.Task[bool]:
        """Cancel the run. The request is made even if nobody awaits the task, which returns False if the run had
        already ended. The server knows by the token who cancels."""
        if self._cancelling is None or self._cancelling.done():
            self._cancelling = asyncio.get_running_loop().create_task(self._cancel())
        return self._cancelling

    async def _cancel(self) -> bool:
        await self.wait_for_id()
        while self._outcome is None:
            knows_run = self._begun.is_set()
            try:
                answer = await self._context.connection.ask("POST", f"{self._path}/cancel", is_repeatable=True)
            except UnknownRun:
                if knows_run:
                    raise
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._begun.wait(), 0.02)
                continue
            if answer["cancelled"] and not self._ended.is_set():
                self.status = "cancellation-requested"
            return bool(answer["cancelled"])
        return False

    async def pause_or_outcome(self) -> RemotePause | Outcome:
        """Wait until the call, or a call below it, needs approval, or until the run has ended. Only for a call that was
        made with `pauses=True`; others never pause."""
        if not self.pauses:
            return await self
        end = asyncio.ensure_future(self._ended.wait())
        changes = self._context.feed.changes("inbox")
        try:
            while not self._ended.is_set():
                change = asyncio.ensure_future(_next(changes))
                await asyncio.wait({end, change}, return_when=asyncio.FIRST_COMPLETED)
                if not change.done():
                    change.cancel()
                    await asyncio.gather(change, return_exceptions=True)
                    break
                change.result()
                waiting = await self._context.asked_below(self.id)
                if waiting is not None:
                    return self._pause(waiting)
        finally:
            end.cancel()
            await changes.aclose()
        return await self

    def _pause(self, waiting: Waiting) -> RemotePause:
        def give(answer: ApprovalAnswer) -> asyncio.Task[bool]:
            return asyncio.get_running_loop().create_task(_answered(answer))

        async def _answered(answer: ApprovalAnswer) -> bool:
            return await self._context.answered(waiting, answer)

        return RemotePause(self.id, waiting.run, request_from(waiting), not waiting.expires, give)


async def _next(changes: AsyncIterator[None]) -> None:
    await anext(changes)


def _last_events(outcome: Outcome) -> tuple[Event, Event]:
    """What those get who come after the end. The sequence numbers are not those of the run."""
    at = outcome.started_at + outcome.duration
    return (
        Event(outcome.run_id, 0, at, "status", outcome.status),
        Event(outcome.run_id, 1, at, "outcome", outcome.status, {"outcome": outcome.to_json()}),
    )
