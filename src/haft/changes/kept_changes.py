"""Reading change sets, from any process: what a run changed, and what its files held before and after."""

from __future__ import annotations

import contextlib
import os
from typing import BinaryIO

from haft.changes.candidates import Candidates
from haft.changes.commit.area import Area, can_rename_between
from haft.changes.commit.images import Images, Side
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.tree import Tree
from haft.changes.ledger import Ledger, Row
from haft.changes.store.blobs import Blobs
from haft.contracts import ConflictingPath, HaftError, ToolFailed
from haft.values import dataclass


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What one run changed, and the current state of these changes."""

    row: Row
    entries: tuple[PathChange, ...]
    complete: bool
    reason: str | None
    conflicts: tuple[ConflictingPath, ...] = ()
    part_of: str | None = None
    """The run that made these changes, if someone applied them apart from the run's other changes."""

    @property
    def run(self) -> str:
        return self.row.run

    @property
    def state(self) -> str:
        return self.row.state

    @property
    def engine(self) -> str:
        return self.row.engine


class KeptChanges:
    """Reads the change sets of a state home."""

    def __init__(self, ledger: Ledger, blobs: Blobs) -> None:
        self.ledger = ledger
        self._blobs = blobs
        self._images: dict[str, Images] = {}
        self._trees: dict[str, Tree] = {}

    def close(self) -> None:
        for images in self._images.values():
            images.close()
        for tree in self._trees.values():
            tree.close()
        self._images.clear()
        self._trees.clear()

    def find(self, run: str) -> ChangeSet:
        """The change set of a run, by the run's id or a unique prefix of the id."""
        row = self.ledger.find(run)
        manifest = Manifest.read(os.path.join(row.area, row.directory))
        if manifest is None:
            raise ToolFailed(f"the changes of {row.run} are no longer kept: {row.reason or 'they were discarded'}")
        return ChangeSet(
            row,
            manifest.entries,
            manifest.complete,
            row.reason or manifest.reason,
            part_of=manifest.notes.get("part_of"),
        )

    def parts(self, run: str) -> list[ChangeSet]:
        """The parts of a run's changes that someone applied separately, oldest first. Each is a change set of its own,
        that of the run that applied it."""
        found: list[ChangeSet] = []
        for row in self.ledger.of_parent(run):
            with contextlib.suppress(HaftError):  # Its changes were dropped.
                part = self.find(row.run)
                if part.part_of == run:
                    found.append(part)
        return found

    def read(self, found: ChangeSet, each: PathChange, side: Side) -> BinaryIO | None:
        """Open the content of a file before or after the change; None if the content is no longer kept."""
        row = found.row
        if not os.path.isdir(row.workspace) or not os.path.isdir(row.area):
            return None
        held = f"{row.directory}/upper" if row.state == "held" else None
        runs = Candidates(self.ledger, [row])
        return self._images_of(row).open(self._tree(row.workspace), each, side, lambda: runs.of(each.path), held)

    def _images_of(self, row: Row) -> Images:
        images = self._images.get(row.area)
        if images is None:
            area = Area(row.area, row.workspace, "", can_rename_between(row.workspace, row.area))
            images = self._images[row.area] = Images(area, self._blobs)
        return images

    def _tree(self, workspace: str) -> Tree:
        tree = self._trees.get(workspace)
        if tree is None:
            tree = self._trees[workspace] = Tree(workspace)
        return tree
