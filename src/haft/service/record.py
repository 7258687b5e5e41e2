"""The record, as a program that embeds haft sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from haft.audit import Verdict, entries, last_entries, verify
from haft.storage import StateHome


class RecordFacade:
    """Reads and checks; writing is the pipeline's."""

    def __init__(self, home: StateHome) -> None:
        self._home = home

    def verify(self) -> Verdict:
        """Check every entry and the head."""
        return verify(self._home.audit)

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries, oldest first."""
        return entries(self._home.audit)

    def last(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest entries, newest first."""
        return last_entries(self._home.audit, limit)
