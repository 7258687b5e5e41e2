"""The runs whose originals (replaced files) may hold the earlier content of a path: the runs to be reversed, and later
runs that changed the path.

The ledger is queried by path, so the cost of an undo depends on the paths that the undo touches, not on the number of
change sets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from haft.changes.ledger import Ledger, Row

_MOST: Final = 200
"""How many later runs that changed a path are searched. The first of these runs usually holds the file."""


class Candidates:
    """For every path, the runs whose originals may hold the path's content, most likely first."""

    def __init__(self, ledger: Ledger, rows: Sequence[Row], paths: Iterable[str] | None = None) -> None:
        """`rows` are the runs to be reversed, all of one workspace. If `paths` are given, one query finds out which of
        these paths were also changed by other runs, so that `of` needs no query for a path that no other run
        changed."""
        self._ledger = ledger
        self._first = min(rows, key=lambda row: row.seq)
        self._runs = list(dict.fromkeys([row.latest for row in rows] + [row.run for row in rows]))
        self._touched = None
        if paths is not None:
            every = {above for path in paths for above in with_parents(path)}
            self._touched = ledger.touched(self._first.workspace, every, self._first.seq)

    def of(self, path: str) -> list[str]:
        above = [*with_parents(path)]
        if self._touched is not None and self._touched.isdisjoint(above):
            return self._runs
        later = self._ledger.touching(
            self._first.workspace, above, after=self._first.seq, limit=_MOST, newest_first=False
        )
        return list(dict.fromkeys([*self._runs, *(row.run for row in later if row.kept)]))


def with_parents(path: str) -> Iterator[str]:
    """The path, then the directories above it, up to the workspace, which is not included."""
    while path:
        yield path
        path = os.path.dirname(path)


def last_changes(ledger: Ledger, workspace: str, paths: Sequence[str], after: int) -> Iterator[Row]:
    """The committed change sets that changed any of these paths and have a sequence number above `after`, newest first,
    read lazily."""
    before = None
    while rows := ledger.touching(workspace, paths, after=after, before=before, limit=_MOST):
        yield from (row for row in rows if row.state == "committed")
        before = rows[-1].seq
