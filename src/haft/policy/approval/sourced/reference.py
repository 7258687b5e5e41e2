"""What one file says that it loads."""

from __future__ import annotations

import os
from typing import Literal

from haft.values import dataclass

Language = Literal["shell", "python", "javascript"]


@dataclass(frozen=True, slots=True)
class Script:
    """A file, and all that decides what it says."""

    path: str
    main: str
    """The file that was started, which loads this one or is it."""
    real_path: str
    real_main: str
    text: str

    def real(self, path: str) -> str:
        """Where a path leads, links followed. Of others than these two the path itself will do: it leads to the same
        file, and is followed when that is read."""
        return {self.path: self.real_path, self.main: self.real_main}.get(path, path)


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that is loaded."""

    path: str
    """Absolute. With `*`, `?` or `[`, all files that fit."""
    language: Language | None = None
    """In which it is read, where whoever loads it decides that."""
    is_started: bool = False
    """Whether it is a program of its own; else it runs in the one that loads it."""
    is_module: bool = False
    """Whether it lacks its ending, or is a folder, as modules are named: it counts where there is such a file."""


@dataclass(frozen=True, slots=True)
class Said:
    """All that a file says."""

    references: tuple[Reference, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Where something is loaded that cannot be told: `LINE: WORDS`."""


def absolute(path: str, base: str | None) -> str | None:
    """A path as seen from `base`; None where that is not known, and needed."""
    if os.path.isabs(path):
        return os.path.normpath(path)
    return None if base is None else os.path.normpath(os.path.join(base, path))
