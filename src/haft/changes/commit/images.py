"""Finding what files held: among what was displaced, in the workspace itself, and in the store.

An original that was moved away is worth more than a copy: it is the same inode, with everything that a copy may lose.
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
    """What one committed run displaced, by the paths it had."""

    def __init__(self, area: str, run: str) -> None:
        self.run = run
        self.manifest = Manifest.read(os.path.join(area, "kept", run))
        self._taken: dict[str, str] = {}
        if self.manifest is not None:
            for step in steps_of(self.manifest):
                if step.out is not None:
                    self._taken[step.path] = f"kept/{run}/{OUT}/{step.number}"

    def place(self, path: str) -> str | None:
        """Where below the area the original of a path would lie."""
        above = path
        while True:
            if above in self._taken:
                return self._taken[above] + path[len(above) :]
            if not above:
                return None
            above = os.path.dirname(above)


class Images:
    """All there is of one workspace."""

    def __init__(self, area: Area, blobs: Blobs) -> None:
        self._area = area
        self.blobs = blobs
        self.ours = Tree(area.path, forced=True)
        self.originals = lru_cache(maxsize=200)(lambda run: Originals(area.path, run))

    def close(self) -> None:
        self.ours.close()

    def original(self, path: str, wanted: Entry, runs: Iterable[str]) -> str | None:
        """Where below the area something lies that is exactly `wanted`, and may be moved back."""
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
        """Whether it can be made anew."""
        if not can_be_set(wanted.attributes):
            return False
        if wanted.kind == "file":
            return wanted.content is not None and self.blobs.has(wanted.content)
        return True

    def open(
        self, workspace: Tree, each: PathChange, side: Side, runs: Callable[[], Sequence[str]], held: str | None = None
    ) -> BinaryIO | None:
        """The content of a file on one side of a change; None where it is no longer kept. `runs` are asked for where
        the store does not have it. `held` is where, below the area, things wait that are not in the workspace yet."""
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
    """A file, for reading; None where there is none."""
    try:
        return os.fdopen(tree.read(path), "rb")
    except OSError:
        return None
