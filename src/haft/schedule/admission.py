"""How many calls run at once. First come, first served; a waiter that gives up leaves no trace."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque


class Admission:
    """A number of places in one host. `Place` takes and returns them."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[bool]] = deque()

    def take(self) -> bool:
        """Take a place at once, if one is free and nobody waits for it."""
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return True
        return False

    def line_up(self) -> asyncio.Future[bool]:
        """Wait for a place: the future is set to True with it."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def leave(self, turn: asyncio.Future[bool]) -> None:
        """Wait no longer."""
        with contextlib.suppress(ValueError):  # `release` may have passed over it already
            self._waiting.remove(turn)

    def release(self) -> None:
        """Give a place back: to the one who waits longest."""
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
