"""The deadlines of calls in progress: for the total time, and for the time without a sign of life.

A deadline ends a call by cancelling the task that runs the call. Afterwards, `expired_limit` says whether the deadline
did that. One timer checks all deadlines many times a second, because a timer for each call would cost too much.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from time import monotonic

from haft.contracts import Clock

CHECK_SECONDS = 0.025


class Deadline:
    """The deadline of one call. It counts from its creation until `Clocks.stop`."""

    __slots__ = (
        "_began_at",
        "_idle",
        "_idle_at",
        "_now",
        "_parent",
        "_paused_at",
        "_pauses",
        "_task",
        "_total_at",
        "expired_limit",
    )

    def __init__(
        self, total: float, idle: float, parent: Deadline | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        """`parent` is the deadline of the run that made this call."""
        self._now = clock
        self._parent = parent
        self._pauses = 0
        self._paused_at = 0.0
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        now = self._began_at = clock()
        self._total_at = now + total
        self._idle = idle
        self._idle_at = now + idle
        self.expired_limit: str | None = None
        """The limit that ran out, `max_seconds` or `max_idle_seconds`; None if neither did."""

    def restart_idle(self) -> None:
        """Restart the idle time after a sign of life, for this call and for the runs that wait for it."""
        self._idle_at = self._now() + self._idle
        if self._parent is not None:
            self._parent.restart_idle()

    def pause(self) -> None:
        """Stop counting time, because a nested call of this call waits for a person."""
        if not self._pauses:
            self._paused_at = self._now()
        self._pauses += 1

    def resume(self) -> None:
        """Continue to count time, without the time since `pause`."""
        self._pauses -= 1
        if not self._pauses:
            paused = self._now() - self._paused_at
            self._began_at += paused
            self._total_at += paused
            self._idle_at += paused

    @property
    def elapsed(self) -> float:
        """The seconds that have counted so far."""
        return (self._paused_at if self._pauses else self._now()) - self._began_at

    def check(self, now: float) -> None:
        """Cancel the call if its time is up."""
        if self.expired_limit is not None or self._pauses:
            return
        if now >= self._total_at:
            self.expired_limit = "max_seconds"
        elif self._idle and now >= self._idle_at:
            self.expired_limit = "max_idle_seconds"
        else:
            return
        self._task.cancel()


class Clocks:
    """All deadlines of a host. The timer runs only while there are deadlines."""

    def __init__(self, clock: Clock | None = None) -> None:
        """`clock`: the clock of a test."""
        self._running: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._now = monotonic if clock is None else clock.monotonic
        self._loop: asyncio.AbstractEventLoop | None = None
        if clock is not None:
            clock.on_move(self._check_soon)

    def start(self, total: float, idle: float, parent: Deadline | None = None) -> Deadline:
        """Start a deadline for the current task."""
        deadline = Deadline(total, idle, parent, self._now)
        self._running.add(deadline)
        if self._timer is None:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(CHECK_SECONDS, self._check_all)
        return deadline

    def stop(self, deadline: Deadline) -> None:
        self._running.discard(deadline)

    def _check_soon(self) -> None:
        """Check all deadlines at once, because the clock was moved. Any thread may call this."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._check_all)

    def _check_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running:
            now = self._now()
            for deadline in self._running:
                deadline.check(now)
            self._timer = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._check_all)


@contextlib.contextmanager
def deadlines_paused(deadlines: Iterable[Deadline | None]) -> Iterator[None]:
    """A context in which these deadlines stand still."""
    paused = [each for each in deadlines if each is not None]
    for each in paused:
        each.pause()
    try:
        yield
    finally:
        for each in paused:
            each.resume()
