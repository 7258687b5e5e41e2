"""Limits how many calls run at the same time. Calls wait in order of arrival; one that gives up leaves no trace."""

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
        """Take a slot at once; False if none is free or others wait."""
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return True
        return False

    def enqueue(self) -> asyncio.Future[bool]:
        """Wait for a slot: the future becomes True when it is assigned."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def leave(self, turn: asyncio.Future[bool]) -> None:
        """Stop waiting."""
        with contextlib.suppress(ValueError):  # `release` may have removed it already
            self._waiting.remove(turn)

    def release(self) -> None:
        """Return a slot: to the call that waits longest, if any."""
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
