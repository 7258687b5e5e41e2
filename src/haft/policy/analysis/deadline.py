"""A limit for the time that one line takes, measured as processor time of its own thread."""

from __future__ import annotations

import time
from typing import Final

_MAX_SECONDS: Final = 0.06


class NotUnderstood(Exception):
    """The line cannot be split with certainty; the argument is the reason."""


class Deadline:
    """Begins when it is made. After its end, nothing more is analysed."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float = _MAX_SECONDS) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Raise `NotUnderstood` if the time is over."""
        if time.thread_time() > self._end:
            raise NotUnderstood("its analysis takes too long")
