"""The conditions under which a service runs in a test. An ordinary service has none."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from haft.contracts.confinement import NO_GRANTS, Grants
from haft.contracts.ports import Command, OutputSink, Session
from haft.contracts.tool import ToolSpec
from haft.values import dataclass

STAND_INS: Final = "/dev/.programs"
"""Where calls in the sandbox see the directory of the program stubs."""


@dataclass(frozen=True, slots=True)
class StandIns:
    """Programs that stand for real ones in every call of a service."""

    directory: str
    """The directory with everything that the stubs need. Calls in the sandbox see it at `STAND_INS`, read-only."""
    path: str
    """The directory, relative to `directory`, that comes first on PATH."""
    reports: str
    """The pipe, relative to `directory`, to which calls may write."""
    covers: tuple[tuple[str, str], ...] = ()
    """Files that are replaced in the sandbox: the real path of each, and the stub, relative to `directory`."""
    needs_sandbox: str | None = None
    """The part of the scenario that works only in the sandbox; None if PATH is enough."""
    only: tuple[str, ...] | None = None
    """The programs, by name or path, that a call may start in addition to the stubs and to the program of the command
    itself. None: any program."""

    def on_path(self, *, sandboxed: bool) -> str:
        """The directory that comes first on PATH."""
        return f"{STAND_INS if sandboxed else self.directory}/{self.path}"


class Clock(Protocol):
    """The time by which a service measures deadlines, and the age of answers and requests."""

    def monotonic(self) -> float: ...

    def time(self) -> float: ...

    def on_move(self, moved: Callable[[], None]) -> None:
        """Call `moved` whenever somebody moves the clock."""
        ...


class CallFaults(Protocol):
    """The faults that a test injects into the calls of a service."""

    def around(self, spec: ToolSpec) -> AbstractAsyncContextManager[None]:
        """Entered before a tool is invoked, and left when it has answered."""
        ...

    def program(self, command: Command, sink: OutputSink) -> tuple[Command, OutputSink]:
        """The program that is started instead of one that a call starts, and what receives its output."""
        ...

    def session_program(
        self, command: Command, sink: OutputSink
    ) -> tuple[Command, OutputSink, Callable[[Session], Session]]:
        """The same for a program that outlives its calls; and a function that returns the session to use instead of the
        program's own."""
        ...


@dataclass(frozen=True, slots=True)
class Conditions:
    """What differs from an ordinary service."""

    programs: StandIns | None = None
    grants: Grants = NO_GRANTS
    """What every call gets, and every process that outlives its calls."""
    faults: CallFaults | None = None
    clock: Clock | None = None
    """None: the clock of this machine."""

    @property
    def now(self) -> Callable[[], float]:
        """The function that returns the time, in seconds since 1970."""
        return time.time if self.clock is None else self.clock.time


NO_CONDITIONS: Final = Conditions()
