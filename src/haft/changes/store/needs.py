"""Which blobs are still needed, and by which run last: all others may be removed.

A blob is needed by every run that can be undone or redone, and by change sets that are held, still running, or in an
area without being in the ledger. Nothing is removed here. The remover checks again under the locks of all workspaces,
because runs go on being committed meanwhile.
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
    """Whether the run can still be undone or redone."""
    return row.kept and row.state in ("committed", "undone")


def contents_of(manifest: Manifest) -> Iterator[str]:
    """The digests of all contents in a change set, before and after."""
    for each in manifest.entries:
        for entry in (each.before, each.after):
            if _is_content(entry):
                assert entry is not None
                assert entry.content is not None
                yield entry.content


def needs_nothing(row: Row, manifest: Manifest) -> bool:
    """Whether the run can be reversed without stored content: a run that only created files needs none for its undo."""
    if row.verb != "call":
        return False
    sides = (each.before if row.state == "committed" else each.after for each in manifest.entries)
    return not any(entry is not None and entry.kind == "file" for entry in sides)


def _is_content(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "file" and entry.content not in (None, UNREADABLE)


@dataclass(slots=True)
class Needs:
    """Which run needs which blob."""

    home: str
    """The directory for all workspaces in the state home."""
    ledger: Ledger
    last: dict[str, int] = field(default_factory=dict)
    """By digest: the newest run that needs it."""
    pinned: set[str] = field(default_factory=set)
    """Digests that are needed even if old runs are pruned."""
    unreachable: dict[int, str] = field(default_factory=dict)
    """Runs whose disk is not mounted, so that their needs are unknown; and their workspaces."""
    needing_nothing: set[int] = field(default_factory=set)
    """Runs that need no stored content."""
    _seen: int = 0
    _again: list[Row] = field(default_factory=list)
    """Runs whose manifest was missing: it may have been on its way."""
    _read: set[str] = field(default_factory=set)

    def update(self, areas: Iterable[Area]) -> None:
        """Read the needs of all change sets; a second time, only those of newer ones."""
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
            if first:  # Later change sets are in the ledger before they are here.
                self._take([os.path.join(area.kept, run) for run in names_in(area.kept) if run not in listed])

    def is_needed(self, digest: str, cut: int) -> bool:
        """Whether a blob is needed; of the runs, only those after `cut` count."""
        return digest in self.pinned or self.last.get(digest, 0) > cut

    def pin(self, row: Row) -> None:
        """Keep the contents of a run after all."""
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
        """Whether a missing area is gone forever: it was in the state home, or beside a workspace that exists."""
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
