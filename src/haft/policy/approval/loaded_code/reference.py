"""The types `Script`, `Reference` and `References`: a script, and the files that it loads."""

from __future__ import annotations

import os
from typing import Literal

from haft.values import dataclass

Language = Literal["shell", "python", "javascript"]


@dataclass(frozen=True, slots=True)
class Script:
    """A file whose text is searched for references, and everything else that these references depend on."""

    path: str
    main: str
    """The file that was started as a program: this file, or a file that loads it."""
    real_path: str
    real_main: str
    text: str

    def real(self, path: str) -> str:
        """The given path; with links followed if it is the path of this script or of the started program (`main`).
        Other paths need not be resolved, because opening a file follows its links anyway."""
        return {self.path: self.real_path, self.main: self.real_main}.get(path, path)


@dataclass(frozen=True, slots=True)
class Reference:
    """A file, or several files, that a script loads."""

    path: str
    """An absolute path. If it contains `*`, `?` or `[`, it is a pattern and stands for all files that match."""
    language: Language | None = None
    """The language of the file, if the script that loads it determines the language; None if the file itself does."""
    is_started: bool = False
    """Whether the file runs as a program of its own, and not inside the program that loads it."""
    is_module: bool = False
    """Whether `path` is the path of a module, which may lack its ending or be a folder. Such a reference counts only if
    a file of the module exists."""


@dataclass(frozen=True, slots=True)
class References:
    """Everything that a file loads."""

    references: tuple[Reference, ...] = ()
    unresolved: tuple[str, ...] = ()
    """The places where haft cannot tell what is loaded: `LINE: WORDS`."""


def absolute(path: str, base: str | None) -> str | None:
    """The absolute form of a path, which may be relative to `base`; None if it is relative and `base` is not known."""
    if os.path.isabs(path):
        return os.path.normpath(path)
    return None if base is None else os.path.normpath(os.path.join(base, path))
