"""One stream to one client: first what it missed, read from the disk as fast as the client takes it, then what the hub
hands to all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from haft.contracts import HaftError
from haft.surfaces.http.streams import chunks
from haft.surfaces.http.streams.run_topic import NUMBERED, WITHIN_FEED, RunTopic, published
from haft.surfaces.http.streams.topics import Subscriber, View, parts

if TYPE_CHECKING:
    from haft.service import RunEvents
    from haft.surfaces.http.streams.hub import Hub


class Stream:
    """An asynchronous iterator of ready-made chunks. Close it when the client has gone."""

    def __init__(self, hub: Hub, owner: str, *, of_run: bool = False) -> None:
        """`owner` says whose stream it is. With `of_run`, it has one run only, and ends with it."""
        self._hub = hub
        self.owner = owner
        self.subscriber = Subscriber(ends_at_gap=of_run)
        self._view: View = NUMBERED if of_run else WITHIN_FEED
        self._of_run = of_run
        self.topics: list[RunTopic] = []
        """The topics of runs that the stream has joined."""
        self._begin: deque[bytes] = deque()
        self._behind: deque[tuple[str, RunEvents]] = deque()

    def begin_with(self, first: Iterable[bytes]) -> None:
        """Send this before everything else."""
        self._begin.extend(first)

    def follow(self, workspace: str, events: RunEvents) -> None:
        """Send the events of a run too."""
        self._behind.append((workspace, events))

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        while True:
            chunk = self._begin.popleft() if self._begin else self.subscriber.take()
            if chunk is not None:
                return chunk
            if self.subscriber.is_over:
                raise StopAsyncIteration
            if self._behind:
                await self._catch_up(*self._behind[0])
            else:
                await self.subscriber.wait()

    async def _catch_up(self, workspace: str, events: RunEvents) -> None:
        """Read a page of what the client missed of a run, or join the run's topic."""
        try:
            page = await events.page()
        except HaftError as error:
            self._behind.popleft()
            if self._of_run:
                self.subscriber.end(chunks.last(f"the run cannot be read: {error.message}"))
            return
        self._begin.extend(chunk for _, chunk in parts(self._view, published(page)))
        if events.has_ended:
            self._behind.popleft()
            if self._of_run:
                self.subscriber.end()
        elif not page:
            topic = self._hub.topic_of(workspace, events)
            if topic.topic.join(self.subscriber, self._view, events.last):
                self.topics.append(topic)
                self._behind.popleft()

    def close(self) -> None:
        """The client has gone."""
        self._hub.closed(self)
