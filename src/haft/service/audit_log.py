"""The audit log, for programs that embed haft."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from haft.audit import Verdict, entries, entries_from, last_entries, newest_entries, verify
from haft.contracts import iso_time
from haft.runs import RunRecord
from haft.storage import Filter, StateHome, open_stores


class AuditLogFacade:
    """Reads and checks the audit log. Only the pipeline writes it."""

    def __init__(self, home: StateHome) -> None:
        self._home = home

    def verify(self, *, since_checkpoint: bool = False) -> Verdict:
        """Check every entry, and the head, which says where the log ends. If runs have ended, also check that the log
        is not empty. With `since_checkpoint`, check only the entries after the last one that an earlier check found
        intact."""
        verdict = self._verify(since_checkpoint)
        if verdict.intact and verdict.records == 0 and self._has_ended_runs():
            # Read the log once more: a run may have ended between the two reads. Its end is in the log before it is in
            # the database, so the log cannot be empty now.
            verdict = self._verify(since_checkpoint)
            if verdict.intact and verdict.records == 0:
                problem = "the audit log is empty, although runs have ended: it was removed or replaced"
                return dataclasses.replace(verdict, intact=False, problem=problem)
        return verdict

    def _verify(self, since_checkpoint: bool) -> Verdict:
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            return verify(log, since_checkpoint=since_checkpoint)

    def _has_ended_runs(self) -> bool:
        """Whether the database has runs that ended. Runs that are only in a journal do not count: they may not be in
        the audit log yet."""
        stores = open_stores(self._home)
        if not stores.exists():
            return False
        with contextlib.closing(stores.connect()) as connection:
            return any(not RunRecord.from_text(text).is_open for text in connection.runs.select(Filter(limit=20)))

    def entries(self, since: float | None = None, until: float | None = None) -> Iterator[dict[str, Any]]:
        """The entries, the oldest first: all, or those of a time, from `since` on and before `until`."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            yield from (entry for entry in entries(log) if _is_within(entry, since, until))

    def follow(self, since: float | None = None) -> Iterator[list[dict[str, Any]]]:
        """The entries as they come, in groups that may be empty, without an end: those of all processes, the oldest
        first. Wait a moment after an empty group."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            position = 0
            while True:
                found, position = entries_from(log, position)
                yield [entry for entry in found if _is_within(entry, since, None)]

    def newest(self) -> Iterator[dict[str, Any]]:
        """The entries, the newest first. They are read as they are wanted."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            yield from newest_entries(log)

    def last(self, limit: int = 50) -> list[dict[str, Any]]:
        """The last entries, the newest first."""
        with contextlib.closing(open_stores(self._home).audit_log()) as log:
            return last_entries(log, limit)


def _is_within(entry: Mapping[str, Any], since: float | None, until: float | None) -> bool:
    """Whether an entry is of this time. One that cannot be read, or has no time, is of any."""
    at = entry.get("at")
    if not isinstance(at, str):
        return True
    return (since is None or at >= iso_time(since)) and (until is None or at < iso_time(until))
