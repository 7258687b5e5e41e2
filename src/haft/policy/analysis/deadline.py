"""A limit for the time that the analysis of one line may take, measured as processor time of the analysing thread."""

from __future__ import annotations

import time
from typing import Final

_MAX_SECONDS: Final = 0.06


class NotUnderstood(Exception):
    """The line cannot be split with certainty; the exception's argument is the reason."""


class Deadline:
    """A time limit that begins when the object is made. After its end, the line counts as not understood."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float = _MAX_SECONDS) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Raise `NotUnderstood` if the time is over."""
        if time.thread_time() > self._end:
            raise NotUnderstood("its analysis takes too long")
