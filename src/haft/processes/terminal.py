"""The host's side of a program's pseudoterminal: passes its output on, and tells the person's terminal about it."""

from __future__ import annotations

import asyncio
import contextlib
import os

from haft.contracts import OutputSink, Terminal
from haft.processes.streams import Drain


class TerminalLink:
    """Connects the pseudoterminal of one program with the terminal of a person."""

    def __init__(self, terminal: Terminal, sink: OutputSink, loop: asyncio.AbstractEventLoop) -> None:
        self._terminal = terminal
        self._sink = sink
        self._loop = loop
        self._drain: Drain | None = None
        self._lent: int | None = None

    def take(self, descriptor: int) -> None:
        """Take the controlling side of the pseudoterminal, which the helper sends before the program starts."""
        os.set_blocking(descriptor, False)
        self._lent = os.dup(descriptor)
        self._drain = Drain(descriptor, self._receive, self._loop)
        self._terminal.attach(self._lent)

    @property
    def drains(self) -> tuple[Drain, ...]:
        return () if self._drain is None else (self._drain,)

    def close(self) -> None:
        """Give the terminal back to the person."""
        if self._lent is not None:
            self._terminal.detach()
            with contextlib.suppress(OSError):
                os.close(self._lent)
            self._lent = None
        for drain in self.drains:
            drain.close()

    def _receive(self, data: bytes) -> None:
        self._terminal.received(data)
        self._sink.output("stdout", data)
