"""One observer of a run: a queue of events. Its size is bounded, even if its reader is slow.

Statuses and outcomes always arrive. If a reader is too slow, output is skipped, and the next piece of output says how
much was skipped. Of progress events, only the newest are kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from haft.contracts import Event
from haft.values import replace

MAX_TEXT = 1 << 20
"""How many characters of output may wait for one reader."""
MAX_PROGRESS = 64


class RunObserver(Protocol):
    """Is told about the events of a run, on the event loop, and must not wait."""

    def put(self, event: Event) -> None: ...

    def end(self) -> None:
        """The run has ended: no event follows."""
        ...


class Observer:
    """The queue of one observer: the events that the observer has not read yet."""

    def __init__(self, first: Event) -> None:
        self._waiting: deque[Event] = deque([first])
        self._text = 0
        self._progress = 0
        self._skipped = 0
        self._ended = False
        self._wakeup: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        if event.type in ("stdout", "stderr"):
            size = len(event.facts["text"])
            if self._text + size > MAX_TEXT:
                self._skipped += size
                return
            self._text += size
            if self._skipped:
                event = replace(event, facts={**event.facts, "skipped": self._skipped})
                self._skipped = 0
        elif event.type == "progress":
            if self._progress >= MAX_PROGRESS:
                self._drop_oldest_progress()
            self._progress += 1
        self._waiting.append(event)
        self._wake()

    def _drop_oldest_progress(self) -> None:
        for position, event in enumerate(self._waiting):
            if event.type == "progress":
                del self._waiting[position]
                self._progress -= 1
                return

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def events(self, forget: Callable[[Observer], None]) -> AsyncIterator[Event]:
        try:
            while True:
                while self._waiting:
                    event = self._waiting.popleft()
                    if event.type in ("stdout", "stderr"):
                        self._text -= len(event.facts["text"])
                    elif event.type == "progress":
                        self._progress -= 1
                    yield event
                if self._ended:
                    return
                self._wakeup = asyncio.get_running_loop().create_future()
                await self._wakeup
        finally:
            forget(self)
