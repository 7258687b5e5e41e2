"""Replaces a layer by a copy, so that processes that still have its files open cannot change what is committed.

The copy is then read and committed. A process that has a descriptor, a mapping or a directory of the old layer writes
into the old layer, which nobody reads any more. The overlay's marks (extended attributes) are copied too: they say
which directories hide the content of the workspace.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final

from haft.changes.commit.exact_copy import copy
from haft.changes.commit.tree import Tree, is_bound_by_modes, set_mode
from haft.changes.engines.layer import mark_prefix

UPPER: Final = "upper"
OLD: Final = "old"


def replace_by_copy(place: str) -> None:
    """Rename the directory `upper` in `place` to `old`, and make a copy of it named `upper`."""
    os.rename(os.path.join(place, UPPER), os.path.join(place, OLD))
    with Tree(place, forced=True) as source, Tree(place, forced=True) as target:
        closed = _make_readable(source)
        copy(source, OLD, target, UPPER)
        _copy_marks(source, target, OLD)
        for path, mode in closed.items():
            set_mode(target, UPPER + path[len(OLD) :], mode)
        for path, (mode, _inode) in source.widened.items():
            if path != OLD:
                set_mode(target, UPPER + path[len(OLD) :], mode)
        target.widened.clear()


def copy_of_layer(place: str, target: str) -> None:
    """Make a copy of the layer in `place`, with its marks, as the directory `upper` in `target`. The layer stays as it
    is, and may be in use: what changes meanwhile is in the copy as it was before or after. Raises `OSError` if a file
    disappears at the wrong moment, or cannot be read."""
    with Tree(place) as source, Tree(target, forced=True) as onto:
        copy(source, UPPER, onto, UPPER)
        _copy_marks(source, onto, UPPER)


def _make_readable(source: Tree) -> dict[str, int]:
    """Make unreadable files readable, and return their original modes."""
    closed: dict[str, int] = {}
    if is_bound_by_modes():
        for path, status in source.walk(OLD):
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o400 == 0:
                closed[path] = stat.S_IMODE(status.st_mode)
                set_mode(source, path, closed[path] | 0o400)
    return closed


def _copy_marks(source: Tree, target: Tree, name_there: str) -> None:
    prefix = mark_prefix()
    for path, status in source.walk(name_there):
        if stat.S_ISCHR(status.st_mode):
            continue
        where = source.proc_path(path)
        for name in _marks(where, prefix):
            _set_mark(target, UPPER + path[len(name_there) :], name, os.getxattr(where, name, follow_symlinks=False))


def _marks(where: bytes, prefix: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [name for name in os.listxattr(where, follow_symlinks=False) if name.startswith(prefix)]
    return []


def _set_mark(tree: Tree, path: str, name: str, value: bytes) -> None:
    try:
        os.setxattr(tree.proc_path(path), name, value, follow_symlinks=False)
    except PermissionError:
        status = tree.status(path)
        assert status is not None
        set_mode(tree, path, stat.S_IMODE(status.st_mode) | 0o200)
        try:
            os.setxattr(tree.proc_path(path), name, value, follow_symlinks=False)
        finally:
            set_mode(tree, path, stat.S_IMODE(status.st_mode))
