"""The hub: reads what happens in the workspaces of a server, and lets it leave to all streams 40 times a second.

There are two kinds of streams. The stream of a run has its events under their own numbers: a client that comes back
goes on after the last one it has, even after a restart of the server, because the events are read from the disk until
the client has caught up with the topic of the run. The feed has what changes in workspaces: runs, requests, tools, and
the events of the runs that a page shows.

A run, or the state home, is read once for all subscribers. While nobody subscribes, the hub does nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Self

from haft.contracts import HaftError
from haft.surfaces.http.streams import chunks
from haft.surfaces.http.streams.feed import Feed
from haft.surfaces.http.streams.run_topic import RunTopic
from haft.surfaces.http.streams.stream import Stream

if TYPE_CHECKING:
    from haft.contracts import RunId
    from haft.service import RunEvents, ToolService
    from haft.surfaces.http.streams.feed_events import FeedView

TICK_SECONDS: Final = 0.025
ELSEWHERE_SECONDS: Final = 0.1
"""How often runs of other processes are read."""
MOST_PAGES: Final = 16
"""How many more pages of a run that writes very much leave with one tick."""
BEAT_SECONDS: Final = 15.0
"""How often a stream shows a sign of life."""


class Hub:
    """The streams of one server. Enter it with `async with`."""

    def __init__(self, services: Mapping[str, ToolService]) -> None:
        """`services` are those of the workspaces, by name."""
        self._services = services
        self._streams: set[Stream] = set()
        self._runs: dict[tuple[str, RunId], RunTopic] = {}
        self._feed = Feed(services)
        self._closing: str | None = None
        self._has_streams = asyncio.Event()
        self._has_unread = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._tick_for_ever()), asyncio.create_task(self._read_for_ever())]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.end_all("the server has ended")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._feed.close()
        for topic in self._runs.values():
            topic.close()

    @property
    def streams(self) -> Collection[Stream]:
        """The open streams."""
        return self._streams

    def follow(self, owner: str, workspace: str, run: str, after: int = -1) -> Stream:
        """The events of a run after the number `after`, for the client `owner`. Whoever calls this has checked that the
        run may be seen."""
        stream = Stream(self, owner, of_run=True)
        stream.begin_with([chunks.OPENING])
        stream.follow(workspace, self._services[workspace].runs.events(run, after))
        return self._opened(stream)

    async def subscribe(
        self,
        owner: str,
        view: FeedView,
        *,
        after: str | None = None,
        runs: Iterable[tuple[str, str, int]] = (),
    ) -> Stream:
        """The feed as somebody sees it. `after` is the id of the last event of the feed that the client has, if it
        comes back. `runs` are runs whose events are in it too: of each, the name of its workspace, its id, and the
        number of the last event that the client has. Whoever calls this has checked that the runs may be seen."""
        stream = Stream(self, owner)
        await self._feed.join(stream, view, after)
        for workspace, run, seen in runs:
            stream.follow(workspace, self._services[workspace].runs.events(run, seen))
        return self._opened(stream)

    def _opened(self, stream: Stream) -> Stream:
        self._streams.add(stream)
        self._has_streams.set()
        if self._closing is not None:
            stream.subscriber.end(chunks.last(self._closing))
        return stream

    def topic_of(self, workspace: str, events: RunEvents) -> RunTopic:
        """The topic of a run. The first one who has caught up with a run begins its topic."""
        topic = self._runs.get((workspace, events.run))
        if topic is None:
            topic = self._runs[workspace, events.run] = RunTopic(events)
            self._has_unread.set()
        return topic

    def closed(self, stream: Stream) -> None:
        """Forget a stream."""
        self._streams.discard(stream)
        self._feed.topic.leave(stream.subscriber)
        for topic in stream.topics:
            topic.topic.leave(stream.subscriber)

    def end_all(self, reason: str) -> None:
        """End all streams, and those that begin from now on: their clients come back after a moment."""
        self._closing = reason
        for stream in self._streams:
            stream.subscriber.end(chunks.last(reason))

    async def _tick_for_ever(self) -> None:
        next_beat = time.monotonic() + BEAT_SECONDS
        while True:
            if not (self._streams or self._runs or self._feed.is_on):
                self._has_streams.clear()
                await self._has_streams.wait()
            await asyncio.sleep(TICK_SECONDS)
            with contextlib.suppress(HaftError):  # The state home cannot be read now. The next tick may be luckier.
                await self._feed.tick()
            await self._tick_runs()
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + BEAT_SECONDS
                for stream in self._streams:
                    stream.subscriber.beat(chunks.BEAT)

    async def _tick_runs(self) -> None:
        for key, topic in [*self._runs.items()]:
            topic.tick()
            if not topic.is_wanted:
                topic.close()
                del self._runs[key]
        for _ in range(MOST_PAGES):
            busy = [topic for topic in self._runs.values() if topic.can_go_on]
            if not busy:
                return
            for topic in busy:
                topic.tick()
            await asyncio.sleep(0)

    async def _read_for_ever(self) -> None:
        """Read the runs that this process cannot hear of, such as those of other processes."""
        while True:
            if not self._runs:
                await self._has_unread.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_unread.wait(), ELSEWHERE_SECONDS)
            self._has_unread.clear()
            for topic in [*self._runs.values()]:
                with contextlib.suppress(HaftError):  # As above.
                    await topic.read()
