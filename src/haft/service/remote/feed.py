"""What happens in a workspace of a server, heard over one stream for all who wait: runs that end, requests that come
and go, tools that change. Nothing is heard while nobody waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Final, Protocol

import orjson

from haft.contracts import TERMINAL, Event, HaftError, RunId, Status, UnknownRun
from haft.service.remote.connection import Pauses, ServerConnection
from haft.service.remote.problems import ServerUnreachable
from haft.service.remote.shapes import event_from

_AT_ONCE: Final = 8
"""How many runs are asked about at once, after the stream was lost."""
_RETURN_SECONDS: Final = 0.5
"""How long a client waits before it comes back to a server that ended its streams."""


class Follower(Protocol):
    """A run whose end is awaited."""

    def hear(self, status: Status) -> None:
        """Its status changed."""
        ...

    async def refresh(self) -> None:
        """Ask the server how the run is."""
        ...

    def fail(self, error: HaftError) -> None:
        """It cannot be learned how the run ends."""
        ...


class Feed:
    """The stream of one workspace."""

    def __init__(self, connection: ServerConnection, path: str) -> None:
        """`path` is that of the workspace, below `/api/v1`."""
        self._connection = connection
        self._path = f"{path}/events"
        self._followers: dict[RunId, Follower] = {}
        self._watchers: dict[str, set[asyncio.Event]] = {"inbox": set(), "tools": set()}
        self._task: asyncio.Task[None] | None = None
        self._refreshing: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def follow(self, run: RunId, follower: Follower) -> None:
        """Tell `follower` what becomes of a run, from the next change on, until it is forgotten."""
        self._followers[run] = follower
        self._begin()
        self._refresh(follower)  # It may have ended before the stream began.

    def forget(self, run: RunId) -> None:
        """Tell nothing more about a run."""
        self._followers.pop(run, None)

    async def changes(self, kind: str) -> AsyncGenerator[None, None]:
        """Yield now, and again after every change of the `inbox` or of the `tools`."""
        changed = asyncio.Event()
        self._watchers[kind].add(changed)
        self._begin()
        try:
            while True:
                changed.clear()
                yield
                await changed.wait()
        finally:
            self._watchers[kind].discard(changed)

    async def close(self) -> None:
        """Hear nothing more."""
        tasks = [*self._refreshing, *([] if self._task is None else [self._task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._listen())

    @property
    def _is_wanted(self) -> bool:
        return bool(self._followers or any(self._watchers.values()))

    async def _listen(self) -> None:
        last: str | None = None
        pauses = Pauses(self._connection.retry_seconds)
        while self._is_wanted:
            try:
                async with self._connection.stream(self._path, last_id=last) as events:
                    pauses.begin_anew(self._connection.retry_seconds)
                    async for event in events:
                        last = event.id or last
                        self._hear(event.event, event.data)
                        if event.event == "end":
                            break
                await asyncio.sleep(_RETURN_SECONDS)
            except ServerUnreachable as error:
                try:
                    await pauses.wait_or_raise(error)
                except ServerUnreachable:
                    self._fail(error)
                    return
            except HaftError as error:
                self._fail(error)
                return

    def _hear(self, kind: str, data: str) -> None:
        if kind in ("ready", "gap"):
            for follower in self._followers.values():
                self._refresh(follower)
            for changed in (*self._watchers["inbox"], *self._watchers["tools"]):
                changed.set()
        elif kind in self._watchers:
            for changed in self._watchers[kind]:
                changed.set()
        elif kind == "run":
            facts: dict[str, Any] = orjson.loads(data)["run"]
            concerned = self._followers.get(facts["id"])
            if concerned is not None:
                concerned.hear(facts["status"])
                if facts["status"] in TERMINAL:
                    self._refresh(concerned)

    def _refresh(self, follower: Follower) -> None:
        async def refresh() -> None:
            async with self._turns:
                try:
                    await follower.refresh()
                except HaftError as error:
                    follower.fail(error)

        task = asyncio.get_running_loop().create_task(refresh())
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)

    def _fail(self, error: HaftError) -> None:
        for follower in [*self._followers.values()]:
            follower.fail(error)
        self._followers.clear()
        for changed in (*self._watchers["inbox"], *self._watchers["tools"]):
            changed.set()  # Who watches asks the server, and learns what is wrong.


async def run_events(connection: ServerConnection, path: str, *, begun: asyncio.Event) -> AsyncGenerator[Event, None]:
    """The events of a run, from the first one to the outcome, each once: also if the connection is lost, or the server
    restarts. `path` is that of the run. Until `begun` is set, the server may not know the run yet."""
    last = -1
    pauses = Pauses(connection.retry_seconds)
    while True:
        knows_run = begun.is_set()
        try:
            async with connection.stream(f"{path}/events", last_id=str(last)) as events:
                async for each in events:
                    if each.event in ("gap", "end"):
                        break
                    event = event_from(orjson.loads(each.data))
                    if event.seq <= last:
                        continue
                    last = event.seq
                    pauses.begin_anew(connection.retry_seconds)
                    yield event
                    if event.type == "outcome":
                        return
            await pauses.wait_or_raise(ServerUnreachable("the stream of the run ended again and again"))
        except ServerUnreachable as error:
            await pauses.wait_or_raise(error)
        except UnknownRun:
            if knows_run:
                raise
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(begun.wait(), 0.02)
