"""The ignore files that decide what ripgrep finds below a path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
