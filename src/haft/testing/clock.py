"""A clock that a test moves, and that a service uses instead of the clock of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable


class FakeClock:
    """Runs like the real clock, ahead of it by as many seconds as it was moved. It never stands still, because tools
    and the kernel know only the real time.

    Deadlines, the expiry of requests for approval and the age of kept answers follow it. The times in events, in the
    audit log and on files stay real. Any thread may move it.
    """

    def __init__(self) -> None:
        self._ahead = 0.0
        self._deadlines_ahead = 0.0
        self._told: list[Callable[[], None]] = []

    @property
    def ahead(self) -> float:
        """By how many seconds the clock was moved."""
        return self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._deadlines_ahead

    def time(self) -> float:
        return time.time() + self._ahead

    def on_move(self, moved: Callable[[], None]) -> None:
        self._told.append(moved)

    def move(self, seconds: float) -> None:
        """Move the clock forward. What has expired then, ends at once."""
        self._ahead += seconds
        self.move_deadlines(seconds)

    def move_deadlines(self, seconds: float) -> None:
        """Move only the time by which deadlines are measured."""
        self._deadlines_ahead += seconds
        for moved in self._told:
            moved()
