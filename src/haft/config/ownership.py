"""Whose a workspace is. What lies in a directory takes effect on whoever works there, so a workspace that nobody named
counts only where nobody but the person and root can have put something there."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable
from typing import Final

from haft.config.locations import WORKSPACE_FILES
from haft.values import dataclass

BROUGHT: Final = (*WORKSPACE_FILES, ".agents", ".agents/tools", ".agents/skills", ".claude", ".claude/skills")
"""What a workspace brings that takes effect."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """Something in a workspace that others put there, or could have."""

    workspace: str
    path: str
    owner: int
    is_writable: bool
    """Whether everybody can write it; else it is its owner that counts."""

    def sentence(self) -> str:
        owned = f"belongs to {_name(self.owner)}, not to you or root"
        why = "can be written by everybody" if self.is_writable else owned
        return f"the workspace {self.workspace} does not count: {self.path} {why}"

    def remedy(self) -> str:
        return f"to use it, name it with `-w {self.workspace}`, or once for all with `haft trust {self.workspace}`"


def stranger_in(workspace: str, names: Iterable[str] = BROUGHT) -> Stranger | None:
    """The first thing that is not the person's or root's: the directory itself, or one of `names` in it. Of a link,
    both it and what it leads to."""
    for path in (workspace, *(os.path.join(workspace, name) for name in names)):
        for follows in (False, True):
            try:
                found = os.stat(path, follow_symlinks=follows)
            except OSError:
                continue
            if found.st_uid not in (os.geteuid(), 0):
                return Stranger(workspace, path, found.st_uid, is_writable=False)
            if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):
                return Stranger(workspace, path, found.st_uid, is_writable=True)
    return None


def brings_something(directory: str) -> bool:
    """Whether anything there takes effect on whoever works there."""
    return any(os.path.lexists(os.path.join(directory, name)) for name in BROUGHT)


def _name(owner: int) -> str:
    try:
        return f"{pwd.getpwuid(owner).pw_name} (uid {owner})"
    except KeyError:
        return f"uid {owner}"
