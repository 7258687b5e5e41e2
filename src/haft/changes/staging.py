"""Staging directories: places in the workspace for new files whose final path lies on another filesystem than the area.
A file can be renamed only within one filesystem, so it is copied to a staging directory first."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from haft.changes.commit.area import Area, mounts_inside
from haft.changes.commit.exact_copy import copy, link
from haft.changes.commit.journal import remove_inside
from haft.changes.commit.steps import INSIDE
from haft.changes.commit.tree import Tree


class Staging:
    """The staging directories of one host in one workspace."""

    def __init__(self, workspace: str, area: Area, live_in_area: str, tree: Callable[[], Tree]) -> None:
        """`live_in_area` is the directory of the host's running transactions, relative to the area. `tree` opens the
        workspace."""
        self._workspace = workspace
        self._area = area
        self._live_in_area = live_in_area
        self._tree = tree
        self.mounts: list[str] = []
        """Mount points inside the workspace, read when the lock was taken."""
        self._copied: dict[tuple[str, int], str] = {}
        """By staging directory and inode: the copy of a file that was made there. A second hard link of the file is
        linked to this copy."""
        self._uncleared: set[str] = set()
        """Runs whose staging directories could not be removed yet."""

    @property
    def is_clear(self) -> bool:
        """Whether all staging directories that commits have left are removed."""
        return not self._uncleared

    def read_mounts(self) -> None:
        """Find the mount points inside the workspace. Call it under the workspace lock."""
        self.mounts = [os.path.relpath(path, self._workspace) for path in mounts_inside(self._workspace)]

    def begin(self) -> None:
        """Prepare for a new commit."""
        self._copied.clear()

    def can_rename_to(self, path: str) -> bool:
        """Whether files can be renamed between the area and this path of the workspace."""
        return self._area.can_move and not self._mount_of(path)

    def directory_for(self, path: str, run: str) -> str:
        """The staging directory of a run for this path, relative to the workspace."""
        mount, name = self._mount_of(path), f".haft-{run[2:]}"
        return f"{mount}/{name}" if mount else name

    def _mount_of(self, path: str) -> str:
        """The mount point inside the workspace that is `path` itself or a directory above it; empty if there is
        none."""
        for mount in self.mounts:
            if path == mount or path.startswith(mount + "/"):
                return mount
        return ""

    def make(self, directory: str) -> None:
        """Make a staging directory, unless it exists."""
        with Tree(self._workspace) as workspace, contextlib.suppress(FileExistsError):
            where, name = workspace.at(directory)
            os.mkdir(name, 0o700, dir_fd=where)

    def clear(self, run: str) -> None:
        """Remove the staging directories of a commit that stopped before its first step: until then, they hold only
        copies. Those that cannot be removed now are removed by `clear_left`."""
        if not self._is_cleared(run):
            self._uncleared.add(run)

    def clear_left(self) -> None:
        """Remove what `clear` could not remove."""
        self._uncleared = {run for run in self._uncleared if not self._is_cleared(run)}

    def _is_cleared(self, run: str) -> bool:
        is_clear = True
        with self._tree() as workspace:
            for mount in ("", *self.mounts):
                try:
                    remove_inside(workspace, os.path.join(mount, f".haft-{run[2:]}"))
                except OSError:
                    is_clear = False
        return is_clear

    def make_renamable(self, run: str, place: str, path: str) -> str:
        """The place from which the file at `place` can be renamed to `path` in the workspace. This is `place` itself,
        or, if the file is on another filesystem, a copy in a staging directory."""
        if self.can_rename_to(path):
            return place
        staging = self.directory_for(path, run)
        self.make(staging)
        with Tree(self._workspace) as workspace, Tree(self._area.path, forced=True) as ours:
            put = f"{staging}/{len(workspace.children(staging))}.put"
            status = ours.status(place)
            inode = status.st_ino if status is not None and stat.S_ISREG(status.st_mode) else 0
            known = self._copied.get((staging, inode))
            if known is not None:
                link(workspace, known, workspace, put)
            else:
                copy(ours, place, workspace, put)
                if inode:
                    self._copied[staging, inode] = put
        return f"{INSIDE}{put}"

    def make_hard_link(self, run: str, known: str, path: str) -> str | None:
        """Make a hard link of the workspace file `known`, and return its place, from which it can be renamed to `path`.
        None if `path` is on another filesystem than `known`, or if the system forbids the link, as it may for a file of
        another user."""
        if self._mount_of(known) != self._mount_of(path):
            return None
        try:
            with Tree(self._workspace) as workspace, Tree(self._area.path, forced=True) as ours:
                if self.can_rename_to(path):
                    layer = f"{self._live_in_area}/{run}.layer"
                    os.makedirs(os.path.join(self._area.path, layer), mode=0o700, exist_ok=True)
                    place = f"{layer}/{os.urandom(8).hex()}.name"
                    link(workspace, known, ours, place)
                    return place
                staging = self.directory_for(path, run)
                self.make(staging)
                place = f"{staging}/{len(workspace.children(staging))}.put"
                link(workspace, known, workspace, place)
                return f"{INSIDE}{place}"
        except PermissionError:
            return None
