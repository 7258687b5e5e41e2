"""Session processes, which outlive their calls: starts them in the sandbox, and reports changes that they made between
and after calls.

Each process is started and ended by one task. Changes that a process makes after its last call are in no outcome, so
haft logs a warning about them, and records them in the audit log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

from haft import changes
from haft.audit import Trail
from haft.contracts import (
    NO_GRANTS,
    CallFaults,
    Command,
    Connection,
    ConnectionObserver,
    Exit,
    Grants,
    HaftError,
    HeldConnection,
    HostGrant,
    LayeredSession,
    OutputSink,
    RunId,
    Session,
)
from haft.sandbox import Sandbox
from haft.sources import OwnerTask

if TYPE_CHECKING:
    from haft.changes import EngineSelector, WritesBetweenCalls

PATIENCE_SECONDS: Final = 10.0
"""How long haft waits for the lock of the workspace when it looks for the changes of an ended process."""
_log = logging.getLogger("haft")


class Sessions:
    """The processes of one open service that outlive their calls."""

    def __init__(
        self,
        sandbox: Callable[[], Sandbox],
        engine_selector: Callable[[], EngineSelector],
        trail: Callable[[], Trail],
        connections_of: Callable[[RunId], ConnectionObserver | None],
        faults: CallFaults | None = None,
    ) -> None:
        """`connections_of` returns the observer of a live run's connections. `faults`: what a test injects."""
        self._faults = faults
        self._connections_of = connections_of
        self._sandbox = sandbox
        self._engine_selector = engine_selector
        self._trail = trail

    async def start(
        self,
        command: Command,
        sink: OutputSink,
        grants: Grants = NO_GRANTS,
        current_run: Callable[[], RunId | None] = lambda: None,
    ) -> Session:
        kept = _Kept()
        observer = _SessionConnections(current_run, self._connections_of)
        kept.owned = await OwnerTask.open(
            self._kept(kept, command, sink, grants, observer), lambda session: session.wait()
        )
        return kept

    @contextlib.asynccontextmanager
    async def _kept(
        self, kept: _Kept, command: Command, sink: OutputSink, grants: Grants, observer: ConnectionObserver
    ) -> AsyncIterator[Session]:
        """Start the process, and end it when the `with` block ends. If the process may write in the workspace and
        layers are possible, its writes go to a layer."""
        watched: Callable[[Session], Session] = _unchanged
        if self._faults is not None:
            command, sink, watched = self._faults.session_program(command, sink)
        sandbox, engine_selector = self._sandbox(), self._engine_selector()
        confinement = await sandbox.confine_session(grants)
        calls = None
        if "namespaces" in confinement.layers and sandbox.may_write_inside(confinement):
            calls = await engine_selector.new_session_calls(confinement.writable, self._tell)
        try:
            layer = None if calls is None else calls.first
            session = await sandbox.start_session(command, sink, grants, layer, observer)
        except BaseException:
            if calls is not None:
                await calls.collect_writes()
            raise
        if calls is not None:
            engine_selector.session_started(calls, cast(LayeredSession, session), kept)
        try:
            yield watched(session)
        finally:
            await session.end()
            await engine_selector.session_ended(kept)
            await self._look_after(kept)

    def _tell(self, written: WritesBetweenCalls) -> None:
        """Report the changes that a process made between calls."""
        _log.warning("%s", written.sentence())
        self._trail().record_changes_between(written.run, (*written.dropped, *written.held))

    async def _look_after(self, session: Session) -> None:
        """Report the changes that an ended process made after its last call, if it wrote into the workspace without a
        layer."""
        until = time.monotonic() + PATIENCE_SECONDS
        try:
            run, paths = await asyncio.to_thread(
                self._engine_selector().changed_since, session, lambda: time.monotonic() > until
            )
            if not paths:
                return
            _log.warning(
                "after %s, the last call of a process that outlives its calls, changed: %s",
                run,
                changes.describe_paths(paths),
            )
            self._trail().record_changes_between(run, paths)
        except (changes.CallStopped, HaftError, OSError) as error:
            _log.warning(
                "what changed after the last call of a process that outlives its calls is not known: %r", error
            )


def _unchanged(session: Session) -> Session:
    return session


class _SessionConnections:
    """Passes the connections of a session process on to the run that the process works for at that moment."""

    def __init__(
        self,
        current_run: Callable[[], RunId | None],
        connections_of: Callable[[RunId], ConnectionObserver | None],
    ) -> None:
        self._current_run = current_run
        self._connections_of = connections_of

    def _observer(self) -> ConnectionObserver | None:
        run = self._current_run()
        return None if run is None else self._connections_of(run)

    def opened(self, host: str, port: int, grant: str) -> None:
        if (observer := self._observer()) is not None:
            observer.opened(host, port, grant)

    def ended(self, connection: Connection) -> None:
        if (observer := self._observer()) is not None:
            observer.ended(connection)
        else:
            _log.warning(
                "between calls, a process of a plugin or an MCP server had a connection: %s", connection.to_json()
            )

    def incomplete(self, why: str) -> None:
        if (observer := self._observer()) is not None:
            observer.incomplete(why)

    async def ask(self, _held: HeldConnection) -> HostGrant | None:
        return None  # The process may serve other calls, for which nobody would be asked.


class _Kept:
    """A session, and the task that started it and will end it. `end` returns
    after the changes that the process made since its last call were reported."""

    owned: OwnerTask[Session]

    @property
    def is_over(self) -> bool:
        return self.owned.is_closed or self.owned.value.is_over

    def send(self, data: bytes) -> Awaitable[None]:
        return self.owned.value.send(data)

    def begin_call(self) -> None:
        self.owned.value.begin_call()

    async def end_call(self) -> None:
        await self.owned.value.end_call()

    async def wait(self) -> Exit:
        return await self.owned.value.wait()

    async def end(self) -> None:
        await self.owned.value.end()
        await self.owned.close()
