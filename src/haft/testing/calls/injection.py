"""A fault that is injected into the call of a scenario: what all kinds of faults share.

Each fault changes the programs that the call starts, or the output that haft reads from them. It applies to a program
of one call from its start. A program that outlives its calls meets it only while a call is in progress.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from haft.contracts import (
    Approver,
    BadUsage,
    Command,
    EndedChild,
    Exit,
    OutputSink,
    Session,
    Stream,
    ToolSpec,
)
from haft.testing.clock import FakeClock
from haft.testing.scenarios.scenario import Unfit
from haft.values import replace


class Program:
    """One program into which a fault is injected."""

    def __init__(self, sink: OutputSink, *, is_in_call: bool) -> None:
        self.sink = sink
        self.is_in_call = is_in_call
        """Whether the program works for a call now."""
        self.kill: Callable[[], None] = _nothing
        """Kills the program with SIGKILL, and everything that it started."""
        self.gets_input = True
        """Whether input of the call reaches the program."""
        self.outlives_calls = not is_in_call


class Injection:
    """One fault, for one service. It has the methods of `haft.contracts.CallFaults`."""

    OPTIONS: ClassVar[tuple[str, ...]] = ()
    NEEDS_PROGRAM: ClassVar[bool] = True
    """Whether only tools that start a program can have this fault."""
    DELAYS_INPUT: ClassVar[bool] = False
    """Whether input reaches a program that outlives its calls only after the program was told of the call."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in self.OPTIONS:
                known = " and ".join(f"`{each}`" for each in self.OPTIONS) or "none"
                raise BadUsage(f"has no option `{name}`; it has {known}")
        self.happened = False
        self.spec: ToolSpec | None = None
        self.clock = FakeClock()

    def settings(self) -> dict[str, Any]:
        """Settings of the service."""
        return {}

    def check(self, spec: ToolSpec | None = None) -> None:
        """Note the tool, if it is known already. Raise `Unfit` if it cannot have this fault."""
        if spec is not None:
            self.note(spec)
        if self.spec is not None and (reason := self.why_not(self.spec)) is not None:
            raise Unfit(reason)

    def note(self, spec: ToolSpec) -> None:
        """Note the tool of the call. Further tools are called by this one."""
        self.spec = self.spec or spec

    def answering(self, approver: Approver) -> Approver:
        """The approver to use instead of `approver`."""
        return approver

    def why_not(self, spec: ToolSpec) -> str | None:
        """Why a tool cannot have this fault; None if it can."""
        if not self.NEEDS_PROGRAM or spec.has_processes:
            return None
        where = "in haft's own process" if spec.hosting == "in-process" else "on another machine"
        return f"`{spec.name}` runs {where}, so that it has no program for this fault"

    # What the kinds of faults do.

    def started(self, program: Program) -> None:
        """Called when a program begins to work for the call."""
        self.happened = True

    def passed(self, _program: Program, _stream: Stream, data: bytes) -> Iterable[bytes]:
        """The output that haft gets instead of `data`."""
        return (data,)

    def changed(self, command: Command, *, outlives_calls: bool) -> Command:
        """The program that is started instead of `command`."""
        return command

    # What the service calls.

    @contextlib.asynccontextmanager
    async def around(self, spec: ToolSpec) -> AsyncIterator[None]:
        self.note(spec)
        yield

    def program(self, command: Command, sink: OutputSink) -> tuple[Command, OutputSink]:
        program = Program(sink, is_in_call=True)

        def begin(kill: Callable[[], None]) -> None:
            program.kill = kill
            self.started(program)

        # A loaded program would answer in a fork of itself, which is not the process that the fault knows.
        command = replace(self.changed(command, outlives_calls=False), on_process=begin, warm=None)
        return command, _WatchedSink(self, program)

    def session_program(
        self, command: Command, sink: OutputSink
    ) -> tuple[Command, OutputSink, Callable[[Session], Session]]:
        program = Program(sink, is_in_call=False)

        def begin(kill: Callable[[], None]) -> None:
            program.kill = kill

        command = replace(self.changed(command, outlives_calls=True), on_process=begin)
        return command, _WatchedSink(self, program), lambda session: _WatchedSession(self, program, session)


class _WatchedSink:
    """Passes the output of a program through the fault."""

    def __init__(self, injection: Injection, program: Program) -> None:
        self._injection = injection
        self._program = program

    def output(self, stream: Stream, data: bytes) -> None:
        pieces = self._injection.passed(self._program, stream, data) if self._program.is_in_call else (data,)
        for piece in pieces:
            if piece:
                self._program.sink.output(stream, piece)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._program.sink.processes_ended(children)


class _WatchedSession:
    """A session whose calls begin and end with the fault."""

    def __init__(self, injection: Injection, program: Program, session: Session) -> None:
        self._injection = injection
        self._program = program
        self._session = session
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def is_over(self) -> bool:
        return self._session.is_over

    def send(self, data: bytes) -> Awaitable[None]:
        if not self._injection.DELAYS_INPUT:
            return self._session.send(data)
        # A task starts in the next round of the event loop. By then the call has begun.
        task = asyncio.create_task(self._send(data))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        return task

    async def _send(self, data: bytes) -> None:
        if self._program.gets_input:
            await self._session.send(data)

    def begin_call(self) -> None:
        self._session.begin_call()
        self._program.is_in_call = True
        self._injection.started(self._program)

    async def end_call(self) -> None:
        self._program.is_in_call = False
        await self._session.end_call()

    async def wait(self) -> Exit:
        return await self._session.wait()

    async def end(self) -> None:
        await self._session.end()


def _nothing() -> None: ...
