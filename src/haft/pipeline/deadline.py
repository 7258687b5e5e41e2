"""The clocks of calls in progress: total time, and time without a sign of life.

A deadline ends a call by cancelling its task, and says afterwards whether it was the one who did. One timer looks at
all of them many times a second: a timer for each would cost every call more than its deadline is worth.
"""

from __future__ import annotations

import asyncio
from time import monotonic

LOOK_SECONDS = 0.025


class Deadline:
    """The clock of one call, running from when it is made until it is taken off its `Clocks`."""

    __slots__ = ("_above", "_idle", "_idle_at", "_paused_at", "_pauses", "_task", "_total_at", "passed")

    def __init__(self, total: float, idle: float, above: Deadline | None = None) -> None:
        """`above` is the clock of the run that made this one."""
        self._above = above
        self._pauses = 0
        self._paused_at = 0.0
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        now = monotonic()
        self._total_at = now + total
        self._idle = idle
        self._idle_at = now + idle
        self.passed: str | None = None
        """The limit that ran out: `max_seconds` or `max_idle_seconds`."""

    def alive(self) -> None:
        """A sign of life: the idle clock begins again, and that of whoever waits for this call."""
        self._idle_at = monotonic() + self._idle
        if self._above is not None:
            self._above.alive()

    def pause(self) -> None:
        """Stand still: a call that this one made waits for a person."""
        if not self._pauses:
            self._paused_at = monotonic()
        self._pauses += 1

    def resume(self) -> None:
        """Go on; the time between does not count."""
        self._pauses -= 1
        if not self._pauses:
            stood = monotonic() - self._paused_at
            self._total_at += stood
            self._idle_at += stood

    def look(self, now: float) -> None:
        """End the call if its time is up."""
        if self.passed is not None or self._pauses:
            return
        if now >= self._total_at:
            self.passed = "max_seconds"
        elif self._idle and now >= self._idle_at:
            self.passed = "max_idle_seconds"
        else:
            return
        self._task.cancel()


class Clocks:
    """All deadlines of a host. The timer stands still while there are none."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, total: float, idle: float, above: Deadline | None = None) -> Deadline:
        """Begin counting for the task that calls this."""
        deadline = Deadline(total, idle, above)
        self._running.add(deadline)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
        return deadline

    def stop(self, deadline: Deadline) -> None:
        self._running.discard(deadline)

    def _look(self) -> None:
        self._timer = None
        if self._running:
            now = monotonic()
            for deadline in self._running:
                deadline.look(now)
            self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
