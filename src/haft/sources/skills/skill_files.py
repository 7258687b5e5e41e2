"""The files of one skill, by walks that cannot leave it.

A skill of the workspace is reached from the workspace on, however often its folder is swapped for a link meanwhile:
what lies outside of the workspace is neither read nor listed. What such a swap can still show is the workspace's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from haft.contracts import CallError, PathEscapes
from haft.files import Root, shown


class SkillFiles:
    """What lies beneath a skill's folder. Paths are relative to that."""

    def __init__(self, folder: str, within: tuple[str, str] | None) -> None:
        self._root = Root(folder if within is None else within[0])
        self._inside = "." if within is None else within[1]

    def open(self, path: str) -> BinaryIO:
        """A regular file, for reading."""
        return self._root.open(self.locate(path))

    def identity(self, path: str) -> tuple[int, ...] | None:
        """What changes when a file does; None where there is none."""
        return self._root.identity(self.locate(path))

    def is_directory(self, path: str) -> bool:
        """Whether a path is one that can be listed."""
        try:
            os.close(self._root.open_directory(self.locate(path)))
        except CallError:
            return False
        return True

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """A descriptor of a directory, for listing what lies there and opening it."""
        descriptor = self._root.open_directory(self.locate(path))
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def locate(self, path: str) -> str:
        """Where a path really lies, seen from the root of the walk. `PathEscapes` where that is out of the skill."""
        found = self._root.locate(os.path.join(self._inside, path))
        own = self._root.locate(self._inside)
        if own != "." and found != own and not found.startswith(f"{own}/"):
            raise PathEscapes(shown(path[:200]), f"it is not in the skill's folder `{shown(own)}`")
        return found

    def is_reachable(self, path: str) -> bool:
        """Whether a path leads to something that a walk may reach at all: for a skill of the workspace, in there."""
        try:
            self._root.locate(os.path.join(self._inside, path))
        except CallError:
            return False
        return True
