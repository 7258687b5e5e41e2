"""The protected paths of a workspace: files that programs outside the sandbox later run, or that decide what runs
there. A call needs a grant to write them.

Only paths that exist can be read-only while a call runs. haft looks for them only at the top of the workspace and in
the `.git` of the workspace: a search of the whole tree would cost too much in a large workspace.
"""

from __future__ import annotations

import itertools
import os
from typing import Final

from haft.files import NAMES, git_paths_of

_MODULES: Final = ".git/modules"
_INSIDES: Final = frozenset({"branches", "hooks", "info", "lfs", "logs", "objects", "refs", "rr-cache", "worktrees"})
"""Directories inside a repository that contain no other repository."""
_MAX_VISITED: Final = 500
"""The most directories of submodules and worktrees that are searched. If there are more, all of them are protected."""


def protected_names(workspace: str) -> list[str]:
    """The protected paths, relative to the workspace, whether or not they exist."""
    names = list(NAMES)
    git = os.path.join(workspace, ".git")
    if os.path.isfile(git) and not os.path.islink(git):
        names.append(".git")  # It says where the repository is, and so whose hooks run.
    real = os.path.realpath(git)
    if os.path.islink(git) and real.startswith(workspace.rstrip("/") + "/"):
        place = os.path.relpath(real, workspace)
        names += [name.replace(".git", place, 1) for name in NAMES if name.startswith(".git/")]
    named = git_paths_of(workspace)
    names += named.obeyed
    names += [path for path in named.run if os.path.isfile(os.path.join(workspace, path))]
    names += _submodules(workspace)
    names += _worktrees(workspace)
    return names


def _submodules(workspace: str) -> list[str]:
    """The configuration and hooks of every submodule, nested ones included."""
    found: list[str] = []
    waiting, visited = [_MODULES], 0
    while waiting:
        place = waiting.pop()
        below = _directories(os.path.join(workspace, place))
        visited += len(below) + 1
        if visited > _MAX_VISITED:
            return [_MODULES]
        # Every directory counts as a repository: a call could remove the files by which one is recognised.
        found += [f"{place}/{name}" for name in ("commondir", "config", "hooks")]
        waiting += [f"{place}/{name}" for name in below if name not in _INSIDES or place == _MODULES]
        skipped = [name for name in below if name in _INSIDES and place != _MODULES]
        found += [f"{place}/{each}/{name}" for each in skipped for name in ("commondir", "config", "hooks")]
    return found


def _worktrees(workspace: str) -> list[str]:
    below = _directories(os.path.join(workspace, ".git/worktrees"))
    if len(below) > _MAX_VISITED:
        return [".git/worktrees"]
    return [f".git/worktrees/{each}/{name}" for each in below for name in ("commondir", "config.worktree", "gitdir")]


def _directories(path: str) -> list[str]:
    """The names of the directories in a directory. The search ends at the first entry beyond `_MAX_VISITED`."""
    try:
        with os.scandir(path) as found:
            return [
                entry.name for entry in itertools.islice(found, _MAX_VISITED + 1) if entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
