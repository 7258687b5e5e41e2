"""Finding the content of files before and after a change: among originals, in the workspace, and in the blob store.

An original, which was moved to the area, is better than a copy: it has the same inode, and loses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import BinaryIO, Literal

from haft.changes.commit.area import Area
from haft.changes.commit.attributes import can_be_set
from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.commit.journal import OUT, steps_of
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.store.blobs import Blobs

Side = Literal["before", "after"]


class Originals:
    """The originals of one committed run: the files that it replaced or deleted, by their paths."""

    def __init__(self, area: str, run: str) -> None:
        self.run = run
        self.manifest = Manifest.read(os.path.join(area, "kept", run))
        self._taken: dict[str, str] = {}
        if self.manifest is not None:
            for step in steps_of(self.manifest):
                if step.out is not None:
                    self._taken[step.path] = f"kept/{run}/{OUT}/{step.number}"

    def place(self, path: str) -> str | None:
        """The place where the original of a path would be, whether it still exists or not; None if the run replaced
        neither the path nor a directory above it."""
        above = path
        while True:
            if above in self._taken:
                return self._taken[above] + path[len(above) :]
            if not above:
                return None
            above = os.path.dirname(above)


class Images:
    """Finds the contents that haft keeps for one workspace."""

    def __init__(self, area: Area, blobs: Blobs) -> None:
        self._area = area
        self.blobs = blobs
        self.ours = Tree(area.path, forced=True)
        self.originals = lru_cache(maxsize=200)(lambda run: Originals(area.path, run))

    def close(self) -> None:
        self.ours.close()

    def original(self, path: str, wanted: Entry, runs: Iterable[str]) -> str | None:
        """The place of an original of `runs` that equals `wanted` and so can be moved back to `path`; None if there is
        none."""
        for run in runs:
            place = self.originals(run).place(path)
            if place is None:
                continue
            found = read_entry(self.ours, place, forced=True)
            self.ours.restore()
            if found is not None and wanted.is_like(found):
                return place
        return None

    def has(self, wanted: Entry) -> bool:
        """Whether a file equal to `wanted` can be made anew from the blob store."""
        if not can_be_set(wanted.attributes):
            return False
        if wanted.kind == "file":
            return wanted.content is not None and self.blobs.has(wanted.content)
        return True

    def open(
        self, workspace: Tree, each: PathChange, side: Side, runs: Callable[[], Sequence[str]], held: str | None = None
    ) -> BinaryIO | None:
        """Open the content of a file before or after a change; None if the content is no longer kept. `runs` gives the
        runs whose originals are searched if neither the blob store nor the workspace has the content. If the change is
        held, `held` is the place of the new files."""
        wanted = each.before if side == "before" else each.after
        if wanted is None or wanted.kind != "file":
            return None
        if held is not None and side == "after":
            return open_or_none(self.ours, f"{held}/{each.path}")
        if wanted.content and wanted.content != UNREADABLE and self.blobs.has(wanted.content):
            return self.blobs.open(wanted.content)
        found = read_entry(workspace, each.path)
        if found is not None and found.kind == "file" and found.content == wanted.content:
            return open_or_none(workspace, each.path)
        for run in runs():
            place = self.originals(run).place(each.path)
            if place is not None:
                kept = read_entry(self.ours, place, forced=True)
                if kept is not None and kept.kind == "file" and kept.content == wanted.content:
                    return open_or_none(self.ours, place)
        return None


def open_or_none(tree: Tree, path: str) -> BinaryIO | None:
    """Open a file for reading; None if that fails."""
    try:
        return os.fdopen(tree.read(path), "rb")
    except OSError:
        return None
