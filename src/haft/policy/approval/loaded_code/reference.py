"""The files that one script loads."""

from __future__ import annotations

import os
from typing import Literal

from haft.values import dataclass

Language = Literal["shell", "python", "javascript"]


@dataclass(frozen=True, slots=True)
class Script:
    """A file, and everything that its references depend on."""

    path: str
    main: str
    """The file that was started: this one, or one that loads it."""
    real_path: str
    real_main: str
    text: str

    def real(self, path: str) -> str:
        """The target of a path after links are followed. Only these two paths need this: any other path leads to the
        same file, and its links are followed when that file is read."""
        return {self.path: self.real_path, self.main: self.real_main}.get(path, path)


@dataclass(frozen=True, slots=True)
class Reference:
    """A file that is loaded."""

    path: str
    """An absolute path. With `*`, `?` or `[`, all files that match."""
    language: Language | None = None
    """The language in which it is read, if the loading script determines that."""
    is_started: bool = False
    """Whether it runs as a program of its own, and not inside the program that loads it."""
    is_module: bool = False
    """Whether it is a module's name: without a file ending, or a folder. It counts only if such a file exists."""


@dataclass(frozen=True, slots=True)
class References:
    """Everything that a file loads."""

    references: tuple[Reference, ...] = ()
    unresolved: tuple[str, ...] = ()
    """The places where haft cannot tell what is loaded: `LINE: WORDS`."""


def absolute(path: str, base: str | None) -> str | None:
    """A path relative to `base`; None if `base` is needed and not known."""
    if os.path.isabs(path):
        return os.path.normpath(path)
    return None if base is None else os.path.normpath(os.path.join(base, path))
