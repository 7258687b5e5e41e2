"""Ctrl-C, SIGTERM and SIGHUP: the first signal cancels the run and waits for its end, the second quits at once.

Quitting at once is safe. When the helper loses its host, it ends all processes that the tool started, and the next haft
process marks the run as interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUIT: Final = 130


class Interrupts:
    """A context manager that handles Ctrl-C, SIGTERM and SIGHUP until its `with` block ends."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._cancel: Callable[[], bool] | None = None
        self._paused = False
        self.heard = 0
        """How many signals have come so far."""

    def cancels(self, cancel: Callable[[], bool]) -> None:
        """Call `cancel` at the first signal; at once if a signal came before."""
        self._cancel = cancel
        if self.heard:
            cancel()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context manager that ignores Ctrl-C while another program, such as an editor, has the terminal."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._hear, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def _hear(self, number: signal.Signals) -> None:
        if self._paused and number == signal.SIGINT:
            return
        self.heard += 1
        if self.heard > 1:
            os._exit(QUIT)
        self._say("cancelling; press Ctrl-C again to quit at once")
        if self._cancel is not None:
            self._cancel()
