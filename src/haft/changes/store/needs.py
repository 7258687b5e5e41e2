"""Which contents of the store are needed, and by which run last: everything else may go.

A content is needed by every run that can be undone or redone, before and after alike, and by what waits, is under way,
or lies in an area without being in the list. Nothing is removed here; and whoever removes looks again, under the locks
of all workspaces, because runs go on being committed meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from haft.changes.commit.area import Area
from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.commit.manifest import Manifest
from haft.changes.ledger import Ledger, Row
from haft.changes.store.usage import names_in


def is_kept(row: Row) -> bool:
    """Whether what it displaced is still promised."""
    return row.kept and row.state in ("committed", "undone")


def contents_of(manifest: Manifest) -> Iterator[str]:
    """The digests of all that a change set knows, before and after."""
    for each in manifest.entries:
        for entry in (each.before, each.after):
            if _is_content(entry):
                assert entry is not None
                assert entry.content is not None
                yield entry.content


def needs_nothing(row: Row, manifest: Manifest) -> bool:
    """Whether it can be reversed out of thin air: a run that only made things needs nothing to be undone."""
    if row.verb != "call":
        return False
    sides = (each.before if row.state == "committed" else each.after for each in manifest.entries)
    return not any(entry is not None and entry.kind == "file" for entry in sides)


def _is_content(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "file" and entry.content not in (None, UNREADABLE)


@dataclass(slots=True)
class Needs:
    """Who needs what."""

    home: str
    """The directory for all workspaces in the state home."""
    ledger: Ledger
    last: dict[str, int] = field(default_factory=dict)
    """By digest, the newest run that needs it."""
    pinned: set[str] = field(default_factory=set)
    """What is needed whatever becomes of old runs."""
    unreachable: dict[int, str] = field(default_factory=dict)
    """Runs of which it cannot be told what they need, as their disk is not there; and their workspaces."""
    needing_nothing: set[int] = field(default_factory=set)
    """Runs that need nothing."""
    _seen: int = 0
    _again: list[Row] = field(default_factory=list)
    """Runs whose list was not there: it may have been on its way."""
    _read: set[str] = field(default_factory=set)

    def update(self, areas: Iterable[Area]) -> None:
        """Take in what is there; a second time, what is new since."""
        first = not self._seen
        rows = self._again + self.ledger.since(self._seen)
        self._again = []
        for row in rows:
            self._seen = max(self._seen, row.seq)
            if is_kept(row):
                self._take_row(row)
        listed = {row.run for row in rows}
        for area in areas:
            self._take_waiting(area)
            if first:  # Later ones are in the list before they are here.
                self._take([os.path.join(area.kept, run) for run in names_in(area.kept) if run not in listed])

    def is_needed(self, digest: str, cut: int) -> bool:
        """Whether anyone needs a content, of the runs only those after `cut`."""
        return digest in self.pinned or self.last.get(digest, 0) > cut

    def pin(self, row: Row) -> None:
        """It stays after all."""
        manifest = self._manifest(row)
        if manifest is not None:
            self.pinned.update(contents_of(manifest))

    def _take_row(self, row: Row) -> None:
        try:
            manifest = self._manifest(row)
        except OSError:
            self.unreachable[row.seq] = row.workspace
            return
        if manifest is None:
            if os.path.isdir(row.area):
                self._again.append(row)
            elif not self._is_gone(row):
                self.unreachable[row.seq] = row.workspace
            return
        for digest in contents_of(manifest):
            self.last[digest] = max(row.seq, self.last.get(digest, 0))
        if needs_nothing(row, manifest):
            self.needing_nothing.add(row.seq)

    @staticmethod
    def _manifest(row: Row) -> Manifest | None:
        return Manifest.read(os.path.join(row.area, "kept", row.run))

    def _is_gone(self, row: Row) -> bool:
        """Whether an area that is not there will not come back: it lay in the state home, or beside a workspace that
        is there."""
        return row.area.startswith(self.home.rstrip("/") + "/") or os.path.isdir(row.workspace)

    def _take_waiting(self, area: Area) -> None:
        places = [os.path.join(area.held, run) for run in names_in(area.held)]
        self._take(place for place in places if place not in self._read)
        self._read.update(places)
        for host in names_in(area.live):
            inside = os.path.join(area.live, host)
            self._take(os.path.join(inside, run) for run in names_in(inside) if "." not in run)

    def _take(self, places: Iterable[str]) -> None:
        for place in places:
            manifest = Manifest.read(place)
            if manifest is not None:
                self.pinned.update(contents_of(manifest))
