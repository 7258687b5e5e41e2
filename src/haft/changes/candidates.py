"""Among whose displaced files a wanted one may be: the runs to be reversed, and those that changed its path later.

The list of change sets is asked by path, so that an undo costs what it touches, however many others there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from haft.changes.ledger import Ledger, Row

_MOST: Final = 200
"""Later runs of one path that are looked at: what a run displaced is mostly in the first of them."""


class Candidates:
    """For every path, the runs whose originals may be what it held, likeliest first."""

    def __init__(self, ledger: Ledger, rows: Sequence[Row], paths: Iterable[str] | None = None) -> None:
        """`rows` are of one workspace. With `paths`, which of them others have changed is found out at once."""
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
    """The path, and the directories above it within the workspace."""
    while path:
        yield path
        path = os.path.dirname(path)


def last_changes(ledger: Ledger, workspace: str, paths: Sequence[str], after: int) -> Iterator[Row]:
    """The committed change sets after one that changed any of these paths, newest first; read as they are asked for."""
    before = None
    while rows := ledger.touching(workspace, paths, after=after, before=before, limit=_MOST):
        yield from (row for row in rows if row.state == "committed")
        before = rows[-1].seq
