"""The identities (device and inode) of the files and directories that a call was resolved to.

Another process can put a different file at a path at any moment. A call is resolved once; before the helper mounts a
path, it compares the identity, and if the identity differs, the helper starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

Identity = tuple[str, int, int]
"""A path, and the device and inode that were found there."""


def identity(path: str) -> tuple[int, int]:
    """The device and inode of the file at a path; zeros, which no file has, if there is no file."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def identities(paths: Iterable[str]) -> tuple[Identity, ...]:
    """The identities of several paths, each path once."""
    return tuple((path, *identity(path)) for path in dict.fromkeys(paths))


def with_parents(files: Iterable[str]) -> tuple[Identity, ...]:
    """The identities of files, of the targets of links among them, and of every directory above: replacing any of
    these replaces the files."""
    paths: dict[str, None] = {}
    for file in files:
        for path in (file, os.path.realpath(file)):
            while path not in paths and (parent := os.path.dirname(path)) != path:
                paths[path] = None
                path = parent
    return tuple(one for one in identities(paths) if one[1:] != (0, 0))
