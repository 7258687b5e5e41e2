"""Makes the files of a published layer from the steps of a commit.

The new files get a second name in the layer (a hard link), so that nothing is copied. A deleted path becomes a
whiteout, a character device with the number 0: the kernel's overlay then hides the path. The directories above have the
attributes that they have in the workspace, because in an overlay the uppermost directory decides.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of, set_attributes
from haft.changes.commit.exact_copy import copy, link
from haft.changes.commit.steps import INSIDE, Step
from haft.changes.commit.tree import Tree, set_mode, set_owner


def make_layer(steps: Sequence[Step], committed: Tree, area: Tree, directory: str) -> None:
    """Make the files of a layer in `directory`, which is relative to the area and does not exist. `committed` is the
    state before the commit. Raises `OSError` if this filesystem allows no layers."""
    _Maker(committed, area, directory).make(steps)


class _Maker:
    def __init__(self, committed: Tree, area: Tree, directory: str) -> None:
        self._committed = committed
        self._area = area
        self._top = directory
        self._made: dict[str, os.stat_result | None] = {}
        """The directories of the layer. Their values are the directories of the committed state; None if new."""
        self._hidden: set[str] = set()
        """Paths with a whiteout."""

    def make(self, steps: Sequence[Step]) -> None:
        self._make_directory("", os.stat(self._committed.path))
        # The steps that remove directories come last, innermost first. Here, the outermost must be known first.
        for step in sorted(steps, key=lambda one: one.path.count("/") if one.verb == "rmdir" else -1):
            if step.verb == "rmdir":
                self._hide(step.path)
        modes = []
        for step in steps:
            if step.verb == "mode":
                modes.append(step)
            elif step.verb == "mkdir":
                self._place_for(step.path)
                self._new_directory(step.path)
            elif step.verb == "swap" and step.put is not None:
                self._put(step.path, step.put)
            elif step.verb == "swap":
                self._hide(step.path)
        for step in modes:
            if step.path not in self._made:
                self._place_for(step.path)
                self._make_directory(step.path, self._committed.status(step.path))
        self._set_attributes({step.path: step for step in modes})

    def _put(self, path: str, place: str) -> None:
        self._place_for(path)
        if place.startswith(INSIDE):
            raise OSError("the new files wait in the workspace")
        onto = f"{self._top}/{path}"
        status = self._area.status(place)
        if status is None:
            raise FileNotFoundError(place)
        if not stat.S_ISDIR(status.st_mode):
            self._link(place, onto)
            return
        self._copy_directory(place, path, status)

    def _copy_directory(self, place: str, path: str, status: os.stat_result) -> None:
        found = [(path, place, status)]
        self._new_directory(path)
        for inner, below in [*self._area.walk(place)]:
            where = path + inner[len(place) :]
            if stat.S_ISDIR(below.st_mode):
                self._new_directory(where)
                found.append((where, inner, below))
            else:
                self._link(inner, f"{self._top}/{where}")
        self._area.restore(place)  # Closed directories were opened for reading.
        for where, source, below in reversed(found):
            self._take_attributes(self._area, source, below, f"{self._top}/{where}")

    def _link(self, place: str, onto: str) -> None:
        try:
            link(self._area, place, self._area, onto)
        except PermissionError:  # The system forbids links of files of other users.
            copy(self._area, place, self._area, onto)

    def _hide(self, path: str) -> None:
        above = os.path.dirname(path)
        while above:
            if above in self._hidden:
                return
            above = os.path.dirname(above)
        self._place_for(path)
        where, name = self._area.at(f"{self._top}/{path}")
        os.mknod(name, stat.S_IFCHR | 0o600, os.makedev(0, 0), dir_fd=where)
        self._hidden.add(path)

    def _place_for(self, path: str) -> None:
        """Make the directories above a path."""
        words = path.split("/")[:-1]
        for count in range(1, len(words) + 1):
            above = "/".join(words[:count])
            if above not in self._made:
                self._make_directory(above, self._committed.status(above))

    def _make_directory(self, path: str, like: os.stat_result | None) -> None:
        place = f"{self._top}/{path}" if path else self._top
        where, name = self._area.at(place)
        os.mkdir(name, 0o700, dir_fd=where)
        self._made[path] = like

    def _new_directory(self, path: str) -> None:
        self._make_directory(path, None)

    def _set_attributes(self, modes: dict[str, Step]) -> None:
        """Give the directories the attributes that they have in the committed state or get by a step."""
        for path in sorted(self._made, reverse=True):
            onto = f"{self._top}/{path}" if path else self._top
            like, step = self._made[path], modes.get(path)
            if like is not None:
                self._take_attributes(self._committed, path, like, onto)
            if step is not None and step.after is not None:
                set_owner(self._area, onto, step.after.uid, step.after.gid)
                set_attributes(self._area.proc_path(onto), step.after.attributes)
                set_mode(self._area, onto, step.after.mode)

    def _take_attributes(self, tree: Tree, path: str, status: os.stat_result, onto: str) -> None:
        set_owner(self._area, onto, status.st_uid, status.st_gid)
        with contextlib.suppress(UnreadableAttributes, OSError):
            source = tree.proc_path(path) if path else tree.path
            set_attributes(self._area.proc_path(onto), attributes_of(source))
        mode = tree.mode_before(path, status.st_ino)
        set_mode(self._area, onto, stat.S_IMODE(status.st_mode) if mode is None else mode)
