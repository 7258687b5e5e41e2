"""Reads the committed state of the workspace: its own files, with the published layers over them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from haft.changes.commit.tree import Tree
from haft.changes.commit.widened_modes import WidenedModes


class CommittedTree(Tree):
    """A `Tree` for reading. Published layers are plain: they have files, directories and whiteouts, no other marks."""

    def __init__(
        self, path: str, layers: Sequence[str], *, forced: bool = False, notes: WidenedModes | None = None
    ) -> None:
        """`layers` are the directories with the files of the published layers, the newest first."""
        super().__init__(path, forced=forced, notes=notes)
        self._layers = [Tree(layer, forced=forced) for layer in layers]

    def restore(self, beneath: str = "") -> None:
        super().restore(beneath)
        for layer in self._layers:
            layer.restore(beneath)

    def close(self) -> None:
        for layer in self._layers:
            layer.close()
        super().close()

    def forget(self) -> None:
        super().forget()
        for layer in self._layers:
            layer.forget()

    def layer_of(self, path: str) -> Tree | None:
        """The layer that has the path; None if the workspace itself decides about it. Raises `FileNotFoundError` if a
        layer hides the path."""
        for layer in self._layers:
            if (found := _look(layer, path)) is not None:
                if not found:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                return layer
        return None

    def status(self, path: str) -> os.stat_result | None:
        try:
            layer = self.layer_of(path)
        except FileNotFoundError:
            return None
        return super().status(path) if layer is None else layer.status(path)

    def at(self, path: str) -> tuple[int, str]:
        layer = self.layer_of(path)
        return super().at(path) if layer is None else layer.at(path)

    def mode_before(self, path: str, inode: int) -> int | None:
        for tree in self._layers:
            if (mode := tree.mode_before(path, inode)) is not None:
                return mode
        return super().mode_before(path, inode)

    def children(self, path: str) -> list[tuple[str, os.stat_result]]:
        found: dict[str, os.stat_result | None] = {}
        for layer in self._layers:
            here = True if not path else _look(layer, path)
            if here is False:
                break
            if here is None:
                continue
            status = None if not path else layer.status(path)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                break
            for name, below in layer.children(path):
                found.setdefault(name, None if is_whiteout(below) else below)
        else:
            try:
                for name, below in super().children(path):
                    found.setdefault(name, below)
            except (FileNotFoundError, NotADirectoryError):
                if not found and not self._has_directory(path):
                    raise
        some = [(name, status) for name, status in found.items() if status is not None]
        return sorted(some, key=lambda pair: os.fsencode(pair[0]))

    def _has_directory(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)


def is_whiteout(status: os.stat_result) -> bool:
    """Whether an entry of a layer says that the name does not exist."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _look(layer: Tree, path: str) -> bool | None:
    """Whether a layer has a path: True or, if it hides the path, False; None if it says nothing about the path."""
    words = path.split("/")
    for count in range(1, len(words) + 1):
        status = layer.status("/".join(words[:count]))
        if status is None:
            return None
        if is_whiteout(status) or (count < len(words) and not stat.S_ISDIR(status.st_mode)):
            return False
    return True
