"""Checks who owns a workspace. Some files in a directory, such as `haft.toml`, affect everyone who works in this
directory. So haft uses a directory that the user did not name explicitly only if nobody but the user and root can have
put such files there."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable
from typing import Final

from haft.config.locations import WORKSPACE_FILES
from haft.values import dataclass

EFFECTIVE_FILES: Final = (
    *WORKSPACE_FILES,
    ".agents",
    ".agents/tools",
    ".agents/skills",
    ".agents/agents",
    ".claude",
    ".claude/skills",
    ".claude/agents",
)
"""The files and directories of a workspace that affect everyone who works in it: configuration, tools, skills and types
of sub-agents."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file in a workspace that another user put there, or could have put there."""

    workspace: str
    path: str
    owner: int
    is_writable: bool
    """True if the problem is that every user can write the file; False if the problem is its owner."""

    def sentence(self) -> str:
        owned = f"belongs to {_name(self.owner)}, not to you or root"
        why = "can be written by every user" if self.is_writable else owned
        return f"haft does not use the workspace {self.workspace}: {self.path} {why}"

    def hint(self) -> str:
        return f"to use it once, give `-w {self.workspace}`; to use it always, run `haft trust {self.workspace}`"


def foreign_file_in(workspace: str, names: Iterable[str] = EFFECTIVE_FILES) -> ForeignFile | None:
    """The first file that another user owns or can write: the directory itself, or one of `names` in it; None if there
    is none. For a link, both the link and its target are checked."""
    for path in (workspace, *(os.path.join(workspace, name) for name in names)):
        for follows in (False, True):
            try:
                found = os.stat(path, follow_symlinks=follows)
            except OSError:
                continue
            if found.st_uid not in (os.geteuid(), 0):
                return ForeignFile(workspace, path, found.st_uid, is_writable=False)
            if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):
                return ForeignFile(workspace, path, found.st_uid, is_writable=True)
    return None


def has_effective_files(directory: str) -> bool:
    """Whether a directory contains any of `EFFECTIVE_FILES`."""
    return any(os.path.lexists(os.path.join(directory, name)) for name in EFFECTIVE_FILES)


def _name(owner: int) -> str:
    try:
        return f"{pwd.getpwuid(owner).pw_name} (uid {owner})"
    except KeyError:
        return f"uid {owner}"
