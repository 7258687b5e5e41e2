"""Finds the tops of git repositories, by the rule that git has: an empty `.git` is no repository. `config`, `sandbox`
and `git_paths` use this module. It reads no file of a repository.
"""

from __future__ import annotations

import os


def is_repository_top(directory: str) -> bool:
    """Whether a directory has the `.git` of a repository: a directory with a `HEAD`; or a file, as in a worktree or a
    submodule. This does not check whether git could read the repository."""
    git = os.path.join(directory, ".git")
    return os.path.isfile(git) or os.path.lexists(os.path.join(git, "HEAD"))
