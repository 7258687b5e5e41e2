"""What in a workspace would run later on the host, or decide what runs: a call may not write it unasked.

Only what exists can be held read-only while a call runs, and only at the top of the workspace and in its own
repository: looking further would cost as much as the workspace is large.
"""

from __future__ import annotations

import itertools
import os
from typing import Final

from haft.files import NAMES, places_of

_MODULES: Final = ".git/modules"
_INSIDES: Final = frozenset({"branches", "hooks", "info", "lfs", "logs", "objects", "refs", "rr-cache", "worktrees"})
"""Directories of a repository that hold no other one."""
_MOST_VISITED: Final = 500
"""Directories of submodules and worktrees that are looked at; where there are more, all of them are closed."""


def protected_names(workspace: str) -> list[str]:
    """Relative to the workspace, whether or not they exist."""
    names = list(NAMES)
    git = os.path.join(workspace, ".git")
    if os.path.isfile(git) and not os.path.islink(git):
        names.append(".git")  # It says where the repository is, and so whose hooks run.
    real = os.path.realpath(git)
    if os.path.islink(git) and real.startswith(workspace.rstrip("/") + "/"):
        place = os.path.relpath(real, workspace)
        names += [name.replace(".git", place, 1) for name in NAMES if name.startswith(".git/")]
    named = places_of(workspace)
    names += named.obeyed
    names += [path for path in named.run if os.path.isfile(os.path.join(workspace, path))]
    names += _submodules(workspace)
    names += _worktrees(workspace)
    return names


def _submodules(workspace: str) -> list[str]:
    """Configuration and hooks of every submodule, nested ones too."""
    found: list[str] = []
    waiting, visited = [_MODULES], 0
    while waiting:
        place = waiting.pop()
        below = _directories(os.path.join(workspace, place))
        visited += len(below) + 1
        if visited > _MOST_VISITED:
            return [_MODULES]
        # Whether this is a repository or only leads to one cannot be told: a call can take away what would tell.
        found += [f"{place}/{name}" for name in ("commondir", "config", "hooks")]
        waiting += [f"{place}/{name}" for name in below if name not in _INSIDES or place == _MODULES]
        skipped = [name for name in below if name in _INSIDES and place != _MODULES]
        found += [f"{place}/{each}/{name}" for each in skipped for name in ("commondir", "config", "hooks")]
    return found


def _worktrees(workspace: str) -> list[str]:
    below = _directories(os.path.join(workspace, ".git/worktrees"))
    if len(below) > _MOST_VISITED:
        return [".git/worktrees"]
    return [f".git/worktrees/{each}/{name}" for each in below for name in ("commondir", "config.worktree", "gitdir")]


def _directories(path: str) -> list[str]:
    """The names of those in a directory; one more than we look at is as good as all."""
    try:
        with os.scandir(path) as found:
            return [
                entry.name
                for entry in itertools.islice(found, _MOST_VISITED + 1)
                if entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
