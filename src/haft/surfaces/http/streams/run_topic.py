"""The topic of a run: its events, read once for all who have caught up with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from haft.surfaces.http.streams import chunks
from haft.surfaces.http.streams.topics import Published, Topic

if TYPE_CHECKING:
    from haft.contracts import Event
    from haft.service import RunEvents


class Numbered:
    """The run has a stream of its own: the numbers of its events are the ids of the stream."""

    def shown(self, event: Published) -> bytes:
        return chunks.with_id(str(event.number), event.chunk)


class WithinFeed:
    """The run is shown in the feed, whose ids are those of the feed."""

    def shown(self, event: Published) -> bytes:
        return event.chunk


NUMBERED: Final = Numbered()
WITHIN_FEED: Final = WithinFeed()


def published(events: Iterable[Event]) -> list[Published]:
    """Events of a run, as a topic has them."""
    return [Published(event.seq, chunks.event(event.type, event.to_json())) for event in events]


class RunTopic:
    """Reads a run from where its first subscriber has come to."""

    def __init__(self, events: RunEvents) -> None:
        self.events = events
        gap = lambda first: chunks.gap({"run": events.run, "from": first})  # noqa: E731  one line says it all
        self.topic = Topic(gap, last=events.last)
        self._is_read = False
        """Whether everything was read that came before this topic heard of the run's events."""
        self._latest: int | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether anybody waits for more events."""
        return self.topic.has_subscribers and not self.events.has_ended

    @property
    def can_go_on(self) -> bool:
        """Whether more can leave before the next tick: there is more, and somebody has taken all that left so far."""
        return self._is_read and self.events.has_more and self.topic.has_idle_subscribers

    def tick(self) -> None:
        """Let the events leave that came since the last tick."""
        if self._is_read:
            self._publish(self.events.heard())
        self.topic.tick()
        if self.events.has_ended:
            self.topic.end(NUMBERED)

    async def read(self) -> None:
        """Read events from the disk, unless this process hears of them."""
        if self._is_read or self.events.has_ended:
            return
        if self._latest is None and self.events.attach():
            self._latest = self.events.latest
        page = await self.events.page()
        self._publish(page)
        self._is_read = self._latest is not None and self.events.last >= self._latest

    def _publish(self, page: list[Event]) -> None:
        for event in published(page):
            self.topic.publish(event.number, event.chunk)

    def close(self) -> None:
        """Read no more."""
        self.events.detach()
