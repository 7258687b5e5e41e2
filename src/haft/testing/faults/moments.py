"""Faults that happen at one moment of a call: the program is killed, the deadline passes, or haft itself is killed.

Without options, the moment is the start of the program. `after_output` and `after_seconds` let the program work first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from haft.contracts import BadUsage, Command, Stream, ToolSpec
from haft.testing.calls.injection import Injection, Program
from haft.values import replace

_LONGER_THAN_ANY_DEADLINE: Final = 2e9
_KILLS_ITSELF: Final = ("/bin/sh", "-c", "kill -KILL $$")
_STOPS_ITSELF: Final = ("/bin/sh", "-c", "kill -STOP $$")


class AtMoment(Injection):
    """A fault that happens once."""

    OPTIONS = ("after_output", "after_seconds")

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        if len(options) > 1:
            raise BadUsage("happens once: keep one of `after_output` and `after_seconds`")
        text, seconds = options.get("after_output"), options.get("after_seconds")
        if text is not None and (not isinstance(text, str) or not text):
            raise BadUsage(f"has `after_output`, which must be a text that the tool writes, not {text!r}")
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0):
            raise BadUsage(f"has `after_seconds`, which must be a number of seconds, not {seconds!r}")
        self._text = None if text is None else text.encode()
        self._seconds: float | None = seconds
        self._seen = b""

    @property
    def is_at_start(self) -> bool:
        return self._text is None and self._seconds is None

    def strike(self, program: Program | None) -> None:
        """Let the fault happen. `program` is None if the tool runs in haft's own process, or elsewhere."""
        raise NotImplementedError

    def started(self, program: Program) -> None:
        if self._seconds is not None:
            asyncio.get_running_loop().call_later(self._seconds, self._strike_once, program)
        elif self._text is None:
            self._strike_once(program)

    def passed(self, program: Program, _stream: Stream, data: bytes) -> Iterable[bytes]:
        if self._text is not None and not self.happened:
            self._seen += data
            if self._text in self._seen:
                asyncio.get_running_loop().call_soon(self._strike_once, program)
            self._seen = self._seen[-len(self._text) :]
        return (data,)

    def _strike_once(self, program: Program | None) -> None:
        if not self.happened and (program is None or program.is_in_call):
            self.happened = True
            self.strike(program)


class Kill(AtMoment):
    """The program is killed with SIGKILL, and everything that it started."""

    DELAYS_INPUT: ClassVar[bool] = True

    def changed(self, command: Command, *, outlives_calls: bool) -> Command:
        if not self.is_at_start or outlives_calls or self.happened:
            return command
        # A quick program could end before a signal from outside reaches it.
        return replace(command, argv=_KILLS_ITSELF)

    def strike(self, program: Program | None) -> None:
        assert program is not None
        if self.is_at_start:
            program.gets_input = False
        if not self.is_at_start or program.outlives_calls:
            program.kill()


class Deadline(AtMoment):
    """The deadline of the call passes, and haft ends the call as at any deadline."""

    NEEDS_PROGRAM: ClassVar[bool] = False

    @contextlib.asynccontextmanager
    async def around(self, spec: ToolSpec) -> AsyncIterator[None]:
        self.note(spec)
        if not spec.has_processes:
            self._strike_once(None)
            await asyncio.Event().wait()  # As if the tool never answered: the deadline cancels this.
        yield

    def strike(self, _program: Program | None) -> None:
        self.clock.move_deadlines(_LONGER_THAN_ANY_DEADLINE)


class HostKilled(AtMoment):
    """haft's own process is killed with SIGKILL, in the middle of the call."""

    NEEDS_PROGRAM: ClassVar[bool] = False
    DELAYS_INPUT: ClassVar[bool] = True
    before: Callable[[], None] | None = None
    """Called before the process is killed."""

    @contextlib.asynccontextmanager
    async def around(self, spec: ToolSpec) -> AsyncIterator[None]:
        self.note(spec)
        if not spec.has_processes:
            self._strike_once(None)
        yield

    def changed(self, command: Command, *, outlives_calls: bool) -> Command:
        # Without a layer, a quick program would have changed the workspace before the signal is sent.
        return replace(command, argv=_STOPS_ITSELF) if self.is_at_start and not outlives_calls else command

    def strike(self, _program: Program | None) -> None:
        if self.before is not None:
            self.before()
        os.kill(os.getpid(), signal.SIGKILL)
