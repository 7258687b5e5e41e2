"""The audit log of a host's state home, for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Any, Final

from haft.audit import Verdict
from haft.service.audit_log import AuditLogFacade
from haft.storage import StateHome

_AT_ONCE: Final = 500


class HostAudit:
    """Reads and checks the audit log. Only the pipeline writes it."""

    def __init__(self, home: StateHome) -> None:
        self._record = AuditLogFacade(home)

    async def verify(self, *, since_checkpoint: bool = False) -> Verdict:
        """Check every entry. With `since_checkpoint`, check only the entries after the last one that an earlier check
        found intact."""
        return await asyncio.to_thread(self._record.verify, since_checkpoint=since_checkpoint)

    async def last(self, limit: int = 50) -> list[dict[str, Any]]:
        """The last entries, the newest first."""
        return await asyncio.to_thread(self._record.last, limit)

    async def entries(self) -> AsyncIterator[dict[str, Any]]:
        """All entries, the oldest first."""
        entries = self._record.entries()
        while found := await asyncio.to_thread(lambda: list(islice(entries, _AT_ONCE))):
            for entry in found:
                yield entry
