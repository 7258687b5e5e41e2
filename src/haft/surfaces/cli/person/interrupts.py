"""Ctrl-C and other wishes to end: the first cancels the run and waits for its end, the second quits at once.

Quitting at once is safe: the helper ends what the tool had started when it loses us, and the next process to look ends
the run as interrupted.
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
    """Listens while entered."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._cancel: Callable[[], bool] | None = None
        self._paused = False
        self.heard = 0
        """How often someone wanted an end."""

    def cancels(self, cancel: Callable[[], bool]) -> None:
        """What the first one does. One that came before is done now."""
        self._cancel = cancel
        if self.heard:
            cancel()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While another program has the terminal: its Ctrl-C is not meant for us."""
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
        self._say("cancelling; once more to quit at once")
        if self._cancel is not None:
            self._cancel()
