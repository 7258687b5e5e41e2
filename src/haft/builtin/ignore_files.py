"""The ignore files that decide what ripgrep finds below a path."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from haft.contracts import AnswerBasis

_MOST_BYTES: Final = 10_000
_NAMES: Final = (".gitignore", ".ignore", ".rgignore")


def ignore_files_above(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths of all ignore files that may apply below these paths, from there to the root of the workspace. Those in
    a path itself are left out, because they lie below it."""
    found: dict[str, None] = {}
    for path in paths:
        above = path
        while above != ".":
            above = above.rpartition("/")[0] or "."
            prefix = "" if above == "." else f"{above}/"
            found.update(dict.fromkeys(prefix + name for name in (*_NAMES, ".git/info/exclude")))
    return tuple(found)


def ripgrep_basis(places: Iterable[str], program: str) -> AnswerBasis:
    """What the output of ripgrep depends on, besides the files below these absolute paths: its own program, and the
    ignore files of all directories above."""
    found: dict[str, None] = {program: None}
    for place in places:
        above = place
        while above != "/":
            above = os.path.dirname(above)
            found.update(dict.fromkeys(os.path.join(above, name) for name in _NAMES))
            found.update(dict.fromkeys(_excludes_of(os.path.join(above, ".git"))))
    return AnswerBasis(tuple(found), {".git": _excludes_of}, follows_links=False)


def _excludes_of(git: str) -> list[str]:
    """The files that say what a repository excludes, given its `.git`: in a linked working tree or a submodule this is
    a file that names another directory."""
    found = [os.path.join(git, "info", "exclude")]
    try:
        with open(git, "rb") as file:
            named = os.fsdecode(file.read(_MOST_BYTES)).strip().removeprefix("gitdir:").strip()
    except OSError:
        return found
    directory = os.path.normpath(os.path.join(os.path.dirname(git), named))
    common = os.path.join(directory, "commondir")
    found += [git, common, os.path.join(directory, "info", "exclude")]
    try:
        with open(common, "rb") as file:
            shared = os.path.normpath(os.path.join(directory, os.fsdecode(file.read(_MOST_BYTES)).strip()))
    except (OSError, ValueError):
        return found
    return [*found, os.path.join(shared, "info", "exclude")]
