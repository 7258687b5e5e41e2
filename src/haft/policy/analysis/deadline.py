"""A bound on the time that one line takes, counted in the processor's time of its own thread."""

from __future__ import annotations

import time
from typing import Final

_MOST_SECONDS: Final = 0.06


class NotUnderstood(Exception):
    """The line cannot be told apart with certainty; the argument is the reason."""


class Deadline:
    """Begins when it is made; what is looked into behind it is not understood."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float = _MOST_SECONDS) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Nothing, or an error where the time is over."""
        if time.thread_time() > self._end:
            raise NotUnderstood("it takes too long to look into")
