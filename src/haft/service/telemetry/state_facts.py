"""What metrics say about a state home: disk, store, audit log, and the calls that wait for a person. Measured in a
thread, and kept for a while, because a scrape must be quick however large the store is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from typing import Final

from haft.config import load_config
from haft.contracts import HaftError
from haft.service.audit_log import AuditLogFacade
from haft.service.housekeeping import bounds_of
from haft.service.inbox import InboxFacade
from haft.service.store import StoreFacade
from haft.storage import StateHome
from haft.values import dataclass

KEPT_SECONDS: Final = 60.0
PATIENCE: Final = 5.0
"""How long a scrape waits for a new measurement before it takes the last one."""


@dataclass(frozen=True, slots=True)
class StateFacts:
    """One measurement."""

    at: float
    store: Mapping[str, int]
    """The bytes of each part of the store."""
    used: int
    """The bytes that count against the limit."""
    limit: int
    undoable: int
    held: int
    database: int
    free: int
    """The free bytes of the disk with the state home."""
    audit_records: int
    audit_bytes: int
    audit_intact: bool
    waiting: int
    """Requests that wait for a person, of all workspaces of the state home."""


class MeasuredState:
    """The facts of one state home, at most so old as they may be."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._known: StateFacts | None = None
        self._measuring: asyncio.Task[None] | None = None

    async def facts(self) -> StateFacts | None:
        """The facts; None if nothing could be measured yet."""
        known = self._known
        if known is None or time.time() - known.at > KEPT_SECONDS:
            if self._measuring is None or self._measuring.done():
                self._measuring = asyncio.create_task(self._measure())
            await asyncio.wait([self._measuring], timeout=PATIENCE)
        return self._known

    async def _measure(self) -> None:
        with contextlib.suppress(HaftError, OSError):  # The disk may be full, or the database busy: the old facts stay.
            self._known = await asyncio.to_thread(measure_state, self._home)


def measure_state(home: StateHome) -> StateFacts:
    """Measure a state home."""
    home.prepare()
    bounds = bounds_of(load_config(None, os.environ), os.environ)
    with contextlib.closing(StoreFacade(home, bounds)) as store:
        usage = store.measure()
    with contextlib.closing(InboxFacade(home)) as inbox:
        waiting = len(inbox.waiting())
    verdict = AuditLogFacade(home).verify(since_checkpoint=True)
    return StateFacts(
        at=time.time(),
        store=usage.parts(),
        used=usage.used,
        limit=usage.budget,
        undoable=usage.undoable,
        held=len(usage.held),
        database=sum(_size(home.database + suffix) for suffix in ("", "-wal")),
        free=shutil.disk_usage(home.path).free,
        audit_records=verdict.records,
        audit_bytes=sum(_size(entry.path) for entry in os.scandir(home.audit)),
        audit_intact=verdict.intact,
        waiting=waiting,
    )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
