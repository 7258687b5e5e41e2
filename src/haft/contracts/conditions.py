"""What a test changes about a service: it injects faults into calls, and moves the service's clock.

`ToolService.open` takes a `Conditions`, and hands it to the few places that need it. An ordinary service has none.
`haft.testing` implements the protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from haft.contracts.ports import Command, OutputSink, Session
from haft.contracts.tool import ToolSpec
from haft.values import dataclass


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
    """What a test changes about a service."""

    faults: CallFaults | None = None
    clock: Clock | None = None
    """None: the clock of this machine."""


NO_CONDITIONS = Conditions()
