"""How many calls run at once. First come, first served; a waiter that gives up leaves no trace."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque


class Admission:
    """A number of places in one host."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take(self) -> bool:
        """Take a place at once, if one is free and nobody waits for it."""
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return True
        return False

    async def wait(self) -> None:
        """Take a place when one becomes free."""
        if self.take():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # The place came in the same moment: pass it on.
            else:
                with contextlib.suppress(ValueError):  # `release` may have passed over it already
                    self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Give a place back: to the one who waits longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    @property
    def waiting(self) -> int:
        return len(self._waiting)
