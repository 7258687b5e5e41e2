"""Opens the files of one skill, so that no path can lead out of the skill.

The files of a skill of the workspace are opened from the workspace's root. So if someone replaces the skill's folder by
a link meanwhile, files outside the workspace are still neither read nor listed: the link can expose only other files of
the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from haft.contracts import CallError, PathEscapes
from haft.files import Root, shown


class SkillFiles:
    """The files in a skill's folder. Paths are relative to the folder."""

    def __init__(self, folder: str, within: tuple[str, str] | None) -> None:
        self._root = Root(folder if within is None else within[0])
        self._inside = "." if within is None else within[1]

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        return self._root.open(self.locate(path))

    def identity(self, path: str) -> tuple[int, ...] | None:
        """A value that changes when the file changes; None if there is no file."""
        return self._root.identity(self.locate(path))

    def is_directory(self, path: str) -> bool:
        """Whether a path is a directory that can be listed."""
        try:
            os.close(self._root.open_directory(self.locate(path)))
        except CallError:
            return False
        return True

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """A context manager that yields a descriptor of a directory, for listing and opening the files in the
        directory."""
        descriptor = self._root.open_directory(self.locate(path))
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def locate(self, path: str) -> str:
        """The real location of a path. For a skill of the workspace it is relative to the workspace, for other skills
        to the skill's folder. Raises `PathEscapes` if the location is outside the skill."""
        found = self._root.locate(os.path.join(self._inside, path))
        own = self._root.locate(self._inside)
        if own != "." and found != own and not found.startswith(f"{own}/"):
            raise PathEscapes(shown(path[:200]), f"it is not in the skill's folder `{shown(own)}`")
        return found

    def is_reachable(self, path: str) -> bool:
        """Whether a path, with links resolved, stays in the workspace; for a skill outside the workspace, in the
        skill's folder."""
        try:
            self._root.locate(os.path.join(self._inside, path))
        except CallError:
            return False
        return True
