"""The feed: what changes in the workspaces of a server, for the pages of the console and for other programs.

Every event has an id of this feed. The latest events are kept for a while, so that a client that comes back misses
nothing. If it missed more, or if the server began anew, it gets a `gap` without a number, and loads its page again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from haft.service import StateNews
from haft.surfaces.http.streams import chunks
from haft.surfaces.http.streams.feed_events import FeedEvent, feed_events
from haft.surfaces.http.streams.topics import Published, Topic, parts

if TYPE_CHECKING:
    from haft.service import ToolService
    from haft.surfaces.http.streams.feed_events import FeedView
    from haft.surfaces.http.streams.stream import Stream

KEPT_BYTES: Final = 500_000
"""How many bytes of the feed are kept for clients that come back."""
IDLE_SECONDS: Final = 60.0
"""How long the feed goes on without subscribers, so that a page that is loaded again misses nothing."""


class Feed:
    """The feed of all workspaces: one topic, of which each subscriber sees a part."""

    def __init__(self, services: Mapping[str, ToolService]) -> None:
        self._services = services
        self._names = {
            path: name
            for name, service in services.items()
            for path in (service.workspace, os.path.realpath(service.workspace))  # Requests have the second.
        }
        self.topic = Topic(self._gap)
        self._kept: deque[Published] = deque()
        self._kept_bytes = 0
        self._news: StateNews | None = None
        self._beginning = asyncio.Lock()
        self._watching: list[asyncio.Task[None]] = []
        self._number = -1
        self._epoch = ""
        """A part of all ids. After a break, the ids of before mean nothing any more."""
        self._used_at = 0.0

    @property
    def is_on(self) -> bool:
        """Whether the feed looks at what happens."""
        return self._news is not None

    async def join(self, stream: Stream, view: FeedView, after: str | None) -> None:
        """Let a stream begin with what its client missed after the event with the id `after`, and then have all that
        happens."""
        async with self._beginning:
            await self._begin()
        seen = self._number_of(after)
        stream.begin_with([chunks.OPENING])
        if seen is not None:
            missed = [each for each in self._kept if seen < each.number <= self.topic.last]
            stream.begin_with(chunk for _, chunk in parts(view, missed))
        elif after is not None:
            stream.begin_with([self._gap(None)])
        ready = chunks.event("ready", {"workspaces": sorted(view.workspaces)})
        stream.begin_with([chunks.with_id(self._id(self.topic.last), ready)])
        self.topic.join(stream.subscriber, view, self.topic.last)

    async def tick(self) -> None:
        """Publish what is new, and let it leave."""
        if self._news is None:
            return
        if self.topic.has_subscribers:
            self._used_at = time.monotonic()
        elif time.monotonic() - self._used_at > IDLE_SECONDS:
            self.close()
            return
        news = await self._news.look()
        if news is not None:
            for event in feed_events(news, self._names):
                self._publish(event)
        self.topic.tick()

    def close(self) -> None:
        """Look no more."""
        for task in self._watching:
            task.cancel()
        self._watching = []
        if self._news is not None:
            self._news.close()
            self._news = None

    async def _begin(self) -> None:
        self._used_at = time.monotonic()
        if self._news is not None:
            return
        news = StateNews([*self._services.values()])
        await news.begin()
        self._epoch = secrets.token_hex(4)
        self._kept.clear()
        self._kept_bytes = 0
        self._watching = [asyncio.create_task(self._watch_tools(name)) for name in self._services]
        self._news = news

    async def _watch_tools(self, workspace: str) -> None:
        is_first = True
        async for _ in self._services[workspace].watch_tools():
            if not is_first:
                self._publish(FeedEvent("tools", {"workspace": workspace}, workspace))
            is_first = False

    def _publish(self, event: FeedEvent) -> None:
        self._number += 1
        chunk = chunks.with_id(self._id(self._number), chunks.event(event.kind, event.data))
        published = Published(self._number, chunk, event)
        self.topic.publish(*published)
        self._kept.append(published)
        self._kept_bytes += len(chunk)
        while self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft().chunk)

    def _id(self, number: int) -> str:
        return f"{self._epoch}.{number}"

    def _number_of(self, name: str | None) -> int | None:
        """The number in an id; None if it is not of this time, or if events after it are not kept any more."""
        epoch, _, number = (name or "").partition(".")
        oldest = self._kept[0].number if self._kept else self._number + 1
        known = range(oldest - 1, self._number + 1)
        return next((each for each in known if str(each) == number), None) if epoch == self._epoch else None

    def _gap(self, first: int | None) -> bytes:
        return chunks.gap({"from": None if first is None else self._id(first)})
