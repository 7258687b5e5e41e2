"""Limits how many calls run at the same time. Calls wait in order of arrival. A call that stops waiting leaves the
queue."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque


class Admission:
    """The slots of one host. `Slot` takes and returns them."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[bool]] = deque()

    def take(self) -> bool:
        """Take a slot at once. Returns False if no slot is free, or if other calls are waiting."""
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return True
        return False

    def enqueue(self) -> asyncio.Future[bool]:
        """Join the queue for a slot. The returned future becomes True when a slot is assigned."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def leave(self, turn: asyncio.Future[bool]) -> None:
        """Leave the queue; `turn` is the future that `enqueue` returned."""
        with contextlib.suppress(ValueError):  # `release` may have removed `turn` already.
            self._waiting.remove(turn)

    def release(self) -> None:
        """Give up a slot. The call that waits longest gets it, if any call waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(True)
                return
        self._free += 1

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        return len(self._waiting)
