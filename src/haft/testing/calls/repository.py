"""Makes git repositories in the workspaces of tests, with the real git.

The same files always give the same hashes: name, e-mail and date are fixed, and neither the configuration of the user
and of the system nor templates and hooks count. git runs outside of the sandbox, so the workspace must not have a
`.git` that somebody else wrote.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Final

from haft.contracts import BadUsage, ToolFailed
from haft.processes import run_blocking
from haft.testing.scenarios.scenario import Unfit

GIT: Final = ".git"
_DATE: Final = "2000-01-01T00:00:00+0000"
FIXED: Final = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": _DATE, "GIT_COMMITTER_DATE": _DATE}
"""Variables with which the commits of a tool also get the same hashes in every run."""
_CONFIG: Final = """\
[user]
	name = Tester
	email = tester@example.com
[gc]
	auto = 0
[maintenance]
	auto = false
"""


def make_repository(directory: str, path: str) -> None:
    """Make a directory a git repository on the branch `main`, and commit its files; an empty commit if there are none.
    `path` is the PATH on which git is found. Raises `Unfit` if git is missing, and `BadUsage` if the directory has a
    `.git`."""
    git = shutil.which("git", path=path)
    if git is None:
        raise Unfit("git is not installed here")
    if os.path.lexists(os.path.join(directory, GIT)):
        raise BadUsage(f"{directory} has a `.git` already")
    env = {**FIXED, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    _run(git, directory, env, "init", "-q", "--template=", "--initial-branch=main")
    with open(os.path.join(directory, GIT, "config"), "a", encoding="utf-8") as file:
        file.write(_CONFIG)
    _run(git, directory, env, "add", "--all")
    _run(git, directory, env, "commit", "-q", "--allow-empty", "-m", "The given files")


def _run(git: str, directory: str, env: Mapping[str, str], *words: str) -> None:
    ended = run_blocking([git, *words], cwd=directory, env=env)
    if ended.code:
        raise ToolFailed(f"git could not make a repository in {directory}: {ended.stderr.strip()}")


def git_of(path: str) -> str | None:
    """The outermost `.git` in a relative path; None if there is none."""
    parts = path.split("/")
    found = next((index for index, part in enumerate(parts) if part.casefold() == GIT), None)
    return None if found is None else "/".join(parts[: found + 1])
