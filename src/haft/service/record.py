"""The record, as a program that embeds haft sees it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from haft.audit import Verdict, entries, last_entries, verify
from haft.runs import Filter, History
from haft.storage import StateHome, open_stores


class RecordFacade:
    """Reads and checks; writing is the pipeline's."""

    def __init__(self, home: StateHome) -> None:
        self._home = home

    def verify(self, *, since_checkpoint: bool = False) -> Verdict:
        """Check every entry and the head, and that there are entries at all where there were runs. With
        `since_checkpoint`, only the entries behind the last one that an earlier check found intact."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            verdict = verify(log, since_checkpoint=since_checkpoint)
        if verdict.intact and verdict.records == 0 and self._has_ended_runs():
            problem = "the record is empty, although runs have ended: it was removed or replaced"
            return dataclasses.replace(verdict, intact=False, problem=problem)
        return verdict

    def _has_ended_runs(self) -> bool:
        if not open_stores(self._home).exists():
            return False
        history = History(self._home)
        try:
            return any(not run.is_open for run in history.runs(Filter(limit=20)))
        finally:
            history.close()

    def entries(self) -> Iterator[dict[str, Any]]:
        """All entries, oldest first."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            yield from entries(log)

    def last(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest entries, newest first."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            return last_entries(log, limit)
