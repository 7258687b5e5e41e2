"""Topics and their subscribers: the part of the hub that knows neither runs nor clocks.

A topic has numbered events. What was published since the last tick leaves with the next one: each event was serialised
once, and all subscribers with the same view of the topic get the same bytes. A subscriber has a buffer with a bound. If
it is full, the subscriber gets nothing more of the topic, except for a `gap` event once it reads again; so a subscriber
that never reads costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from haft.surfaces.http.streams.chunks import LARGEST_CHUNK

MOST_WAITING: Final = 32_768
"""How many bytes wait for one subscriber, unless a single event is longer."""


class Published(NamedTuple):
    """One event of a topic."""

    number: int
    chunk: bytes
    scope: object = None
    """Whatever the views of the topic need to know who may see the event."""


class View(Protocol):
    """How a group of subscribers sees a topic. Two views that are equal show the same."""

    def __hash__(self) -> int: ...

    def shown(self, event: Published) -> bytes | None:
        """The bytes of an event; None if it is hidden."""
        ...


class Subscriber:
    """What one stream has still to send."""

    def __init__(self, *, ends_at_gap: bool = False) -> None:
        """`ends_at_gap`: the stream ends with its first gap, because the client can begin another one there."""
        self._ends_at_gap = ends_at_gap
        self._chunks: deque[bytes] = deque()
        self._gaps: dict[Topic, int] = {}
        self._wakeup: asyncio.Future[None] | None = None
        self._last: bytes | None = None
        self.waiting_bytes = 0
        self.is_over = False
        """Whether nothing is added any more: it is read to its end, and then ends."""

    def offer(self, topic: Topic, first: int, chunk: bytes) -> None:
        """Add the bytes of some events of a topic, the first of which has this number."""
        if self.is_over or topic in self._gaps:
            return
        if self.waiting_bytes and self.waiting_bytes + len(chunk) > MOST_WAITING:
            self._gaps[topic] = first
            return
        self._chunks.append(chunk)
        self.waiting_bytes += len(chunk)
        self._wake()

    def beat(self, chunk: bytes) -> None:
        """Add a sign of life, if nothing else waits."""
        if not self._chunks and not self._gaps and not self.is_over:
            self._chunks.append(chunk)
            self.waiting_bytes += len(chunk)
            self._wake()

    def end(self, last: bytes | None = None) -> None:
        """Add nothing more, except for these last bytes."""
        if not self.is_over:
            self.is_over = True
            self._last = last
            self._wake()

    def take(self) -> bytes | None:
        """The next bytes to send; None if there are none now."""
        if self._chunks:
            chunk = self._chunks.popleft()
            self.waiting_bytes -= len(chunk)
            return chunk
        if self._gaps:
            topic = next(iter(self._gaps))
            first = self._gaps.pop(topic)
            if self._ends_at_gap:
                self.end()
            return topic.gap(first)
        last, self._last = self._last, None
        return last

    async def wait(self) -> None:
        """Wait until there may be something to take, or the subscriber is over."""
        if not self._chunks and not self._gaps and not self.is_over:
            self._wakeup = asyncio.get_running_loop().create_future()
            try:
                await self._wakeup
            finally:
                self._wakeup = None

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)


class Topic:
    """Events with increasing numbers, and who gets them."""

    def __init__(self, gap: Callable[[int], bytes], *, last: int = -1) -> None:
        """`gap` makes the event for a subscriber that misses events from this number on. `last` is the number of the
        latest event before."""
        self.gap = gap
        self.last = last
        """The number of the latest event that left."""
        self._pending: list[Published] = []
        self._views: dict[View, set[Subscriber]] = {}
        self._ahead: dict[Subscriber, tuple[View, int]] = {}

    @property
    def has_subscribers(self) -> bool:
        return bool(self._views or self._ahead)

    @property
    def has_idle_subscribers(self) -> bool:
        """Whether at least one subscriber has taken all that there was for it."""
        return any(not each.waiting_bytes for group in self._views.values() for each in group)

    def publish(self, number: int, chunk: bytes, scope: object = None) -> None:
        """Add an event, which leaves with the next tick."""
        self._pending.append(Published(number, chunk, scope))

    def join(self, subscriber: Subscriber, view: View, position: int) -> bool:
        """Let a subscriber have all events after the one with the number `position`. Returns False if some of them have
        left already."""
        if position < self.last:
            return False
        if position > self.last:
            self._ahead[subscriber] = view, position
        else:
            self._views.setdefault(view, set()).add(subscriber)
        return True

    def leave(self, subscriber: Subscriber) -> None:
        """Let a subscriber have nothing more."""
        self._ahead.pop(subscriber, None)
        for view, group in [*self._views.items()]:
            group.discard(subscriber)
            if not group:
                del self._views[view]

    def end(self, view: View) -> None:
        """End those who have this view: nothing follows."""
        ahead = [subscriber for subscriber, (seen, _) in self._ahead.items() if seen == view]
        for subscriber in (*self._views.pop(view, ()), *ahead):
            self._ahead.pop(subscriber, None)
            subscriber.end()

    def tick(self) -> None:
        """Hand what was published to the subscribers."""
        if not self._pending:
            return
        events, self._pending = self._pending, []
        for view, group in self._views.items():
            for first, chunk in parts(view, events):
                for subscriber in group:
                    subscriber.offer(self, first, chunk)
        for subscriber, (view, position) in [*self._ahead.items()]:
            for first, chunk in parts(view, (event for event in events if event.number > position)):
                subscriber.offer(self, first, chunk)
        self.last = events[-1].number
        for subscriber, (view, position) in [*self._ahead.items()]:
            if position <= self.last:
                del self._ahead[subscriber]
                self._views.setdefault(view, set()).add(subscriber)


def parts(view: View, events: Iterable[Published]) -> list[tuple[int, bytes]]:
    """The events in a few chunks, each with the number of its first event."""
    made: list[tuple[int, bytes]] = []
    first, waiting, size = -1, list[bytes](), 0
    for event in events:
        chunk = view.shown(event)
        if chunk is None:
            continue
        if waiting and size + len(chunk) > LARGEST_CHUNK:
            made.append((first, b"".join(waiting)))
            waiting, size = [], 0
        if not waiting:
            first = event.number
        waiting.append(chunk)
        size += len(chunk)
    if waiting:
        made.append((first, b"".join(waiting)))
    return made
