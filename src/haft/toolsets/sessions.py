"""Processes that outlive their calls: started in the sandbox, and looked after when they end.

What such a process changed after its last call no outcome can name any more: the log says it, and the record.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from haft.audit import Trail
from haft.changes import Coverage, Stopped, listed
from haft.contracts import NO_GRANTS, Command, Exit, Grants, HaftError, OutputSink, Session
from haft.sandbox import Sandbox

PATIENCE_SECONDS: Final = 10.0
"""How long the end waits for whoever else has the workspace."""
_log = logging.getLogger("haft")


class Sessions:
    """Those of one service, once it is open."""

    def __init__(
        self, sandbox: Callable[[], Sandbox], coverage: Callable[[], Coverage], trail: Callable[[], Trail]
    ) -> None:
        self._sandbox = sandbox
        self._coverage = coverage
        self._trail = trail

    async def start(self, command: Command, sink: OutputSink, grants: Grants = NO_GRANTS) -> Session:
        return _LookedAfter(await self._sandbox().start_session(command, sink, grants), self._look_after)

    async def _look_after(self, session: Session) -> None:
        """Say what changed after the last call of one that has ended."""
        until = time.monotonic() + PATIENCE_SECONDS
        try:
            run, paths = await asyncio.to_thread(
                self._coverage().changed_since, session, lambda: time.monotonic() > until
            )
            if not paths:
                return
            _log.warning("after %s, the last call of a plugin's process, changed: %s", run, listed(paths))
            self._trail().tell_between(run, paths)
        except (Stopped, HaftError, OSError) as error:
            _log.warning("what changed after the last call of a plugin's process is not known: %r", error)


class _LookedAfter:
    """A session; its end is over when it was looked at."""

    def __init__(self, session: Session, after: Callable[[Session], Awaitable[None]]) -> None:
        self._session = session
        self._after = after

    @property
    def is_over(self) -> bool:
        return self._session.is_over

    def send(self, data: bytes) -> None:
        self._session.send(data)

    async def ended(self) -> Exit:
        return await self._session.ended()

    async def end(self) -> None:
        await self._session.end()
        await self._after(self)
