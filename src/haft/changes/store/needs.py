"""Which blobs are still needed, and for each of them the newest run that needs it. All other blobs may be removed.

A blob is needed if one of these change sets contains it: the change set of a run that can be undone or redone; a held
change set; the change set of a running call; a change set that is in an area but not in the ledger. This module removes
nothing. Calls go on and commit while it reads. So before `maintenance` removes a blob, it locks all workspaces and
updates the needs once more.
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
    """The content digests of all files in a change set, as they were before and after the run."""
    bases = map(Entry.from_json, manifest.notes.get("bases", {}).values())
    for entry in (*(entry for each in manifest.entries for entry in (each.before, each.after)), *bases):
        if _is_content(entry):
            assert entry is not None
            assert entry.content is not None
            yield entry.content


def needs_nothing(row: Row, manifest: Manifest) -> bool:
    """Whether the run can be reversed (undone or redone) without stored content. For example, the undo of a run that
    only created files needs no stored content."""
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
    """By digest: the sequence number of the newest run that needs the blob."""
    pinned: set[str] = field(default_factory=set)
    """Digests of blobs that must stay even if old runs are pruned."""
    unreachable: dict[int, str] = field(default_factory=dict)
    """By sequence number of a run whose needs are unknown, because its area's disk is not mounted: its workspace."""
    needing_nothing: set[int] = field(default_factory=set)
    """The sequence numbers of runs that need no stored content."""
    _seen: int = 0
    _again: list[Row] = field(default_factory=list)
    """Runs whose manifest was not in `kept` yet: the next update looks again."""
    _read: set[str] = field(default_factory=set)

    def update(self, areas: Iterable[Area]) -> None:
        """Read manifests. The first update reads the manifests of all change sets. Later updates read only the
        manifests of change sets that are new since the last update."""
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
            if first:  # Change sets committed since then are in the ledger before they are in `kept`.
                self._take([os.path.join(area.kept, run) for run in names_in(area.kept) if run not in listed])

    def is_needed(self, digest: str, cut: int) -> bool:
        """Whether a blob is needed if all runs up to the sequence number `cut` are pruned."""
        return digest in self.pinned or self.last.get(digest, 0) > cut

    def pin(self, row: Row) -> None:
        """Mark the blobs of a run as needed, because the run could not be pruned."""
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
        """Whether the missing area of a run is gone forever, and not only on a disk that is not mounted now. It is gone
        if it was in the state home, or if the workspace beside it still exists."""
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
