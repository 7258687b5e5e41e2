"""While a call waits in the inbox: says under which name, so that someone can answer it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from haft.contracts import Event, HaftError
from haft.surfaces.cli.printing import say

if TYPE_CHECKING:
    from haft.storage import StateHome

LOOK_SECONDS: Final = 0.1
LOOKS: Final = 20


class Waiting:
    """Listens to the events of a run, and looks up its question when it is blocked."""

    def __init__(self, home: StateHome, *, quiet: bool) -> None:
        self._home = home
        self._quiet = quiet
        self._task: asyncio.Task[None] | None = None

    def take(self, event: Event) -> None:
        """A status that says that someone is asked begins the search, any other ends it."""
        if event.type != "status" or self._quiet:
            return
        self._stop()
        if event.status == "blocked-on-user":
            self._task = asyncio.create_task(self._tell(event.run))

    async def _tell(self, run: str) -> None:
        with contextlib.suppress(HaftError, OSError):
            say(f"waiting for approval: haft approve {await asyncio.to_thread(self._name, run)}")

    def _name(self, run: str) -> str:
        """Of its question; the run's own where it does not turn up, which will do as well."""
        from haft.service.inbox import InboxFacade

        with contextlib.closing(InboxFacade(self._home)) as inbox:
            for _ in range(LOOKS):
                name = next((each.id for each in inbox.waiting() if each.run == run), None)
                if name is not None:
                    return name
                time.sleep(LOOK_SECONDS)  # The status comes a moment before the question is written down.
        return run

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
