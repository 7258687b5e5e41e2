"""Which files and directories a call was resolved to: by device and inode, so that whoever mounts them can tell.

A path says where something lies, and another process can put something else there at any moment. A call is resolved
once; the helper holds what it mounts against these, and starts nothing where they differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

Identity = tuple[str, int, int]
"""A path, and the device and inode that lay there."""


def identity(path: str) -> tuple[int, int]:
    """Which file or directory it is; nothing that exists where there is none."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def identities(paths: Iterable[str]) -> tuple[Identity, ...]:
    """The same for several, each once."""
    return tuple((path, *identity(path)) for path in dict.fromkeys(paths))


def with_parents(files: Iterable[str]) -> tuple[Identity, ...]:
    """Those of files, of what links among them lead to, and of every directory above: whoever swaps one of these swaps
    the files."""
    paths: dict[str, None] = {}
    for file in files:
        for path in (file, os.path.realpath(file)):
            while path not in paths and (parent := os.path.dirname(path)) != path:
                paths[path] = None
                path = parent
    return tuple(one for one in identities(paths) if one[1:] != (0, 0))
