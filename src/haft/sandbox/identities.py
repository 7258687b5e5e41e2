"""The identities (device and inode) of the files and directories that haft found when it prepared a call.

Another process can put a different file at a path at any moment. haft resolves the paths of a call once. Before the
helper mounts a path, it compares the identity. If the identity differs, the helper starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

Identity = tuple[str, int, int]
"""A path, and the device and inode that were found there."""


def identity(path: str) -> tuple[int, int]:
    """The device and inode of the file at a path. If there is no file, both numbers are zero, which no file has."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def identities(paths: Iterable[str]) -> tuple[Identity, ...]:
    """The identities of several paths, each path once."""
    return tuple((path, *identity(path)) for path in dict.fromkeys(paths))


def with_parents(files: Iterable[str]) -> tuple[Identity, ...]:
    """The identities of files, of the targets of links among these files, and of every directory above them. Whoever
    replaces one of these directories or links replaces the files, too."""
    paths: dict[str, None] = {}
    for file in files:
        for path in (file, os.path.realpath(file)):
            while path not in paths and (parent := os.path.dirname(path)) != path:
                paths[path] = None
                path = parent
    return tuple(one for one in identities(paths) if one[1:] != (0, 0))
