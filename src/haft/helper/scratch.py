"""Restores the scratch directories of a sandbox that serves several calls, after each call.

Files that the call added are removed. If the call changed or removed a file that existed before, the directories cannot
be restored, and the sandbox is not used again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

MAX_ENTRIES = 2000
DEEPEST = 50

Inventory = dict[str, os.stat_result]


class NotAsBefore(ValueError):
    """The scratch directories cannot be restored."""


def inventory(root: int) -> Inventory:
    """All files below `root`, with the metadata that shows whether they changed."""
    return {".": os.stat(root), **dict(_entries(root))}


def restore(root: int, before: Inventory) -> None:
    """Remove the files that were added since the inventory `before`. Raises `NotAsBefore` if other files were changed
    or removed."""
    now = {".": os.stat(root), **dict(_entries(root))}
    for path in sorted(now.keys() - before.keys(), reverse=True):
        if stat.S_ISDIR(now[path].st_mode):
            os.rmdir(path, dir_fd=root)
        else:
            os.unlink(path, dir_fd=root)
    if before.keys() - now.keys() or any(_marks(now[path]) != _marks(found) for path, found in before.items()):
        raise NotAsBefore("files that were there before the call were changed or removed")
    for path, found in before.items():
        if stat.S_ISDIR(found.st_mode):
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns), dir_fd=root)


def _marks(found: os.stat_result) -> tuple[int, ...]:
    """The metadata to compare. Times of directories are left out: they change when entries are added, and `restore`
    sets them back."""
    which = (found.st_ino, found.st_mode, found.st_uid, found.st_gid)
    return which if stat.S_ISDIR(found.st_mode) else (*which, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _entries(root: int) -> Iterator[tuple[str, os.stat_result]]:
    waiting, seen = ["."], 0
    while waiting:
        directory = waiting.pop()
        place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
        try:
            with os.scandir(place) as found:
                for entry in found:
                    seen += 1
                    path = entry.name if directory == "." else f"{directory}/{entry.name}"
                    if seen > MAX_ENTRIES or path.count("/") > DEEPEST:
                        raise NotAsBefore("there are too many files in it")
                    about = entry.stat(follow_symlinks=False)
                    yield path, about
                    if stat.S_ISDIR(about.st_mode):
                        waiting.append(path)
        finally:
            os.close(place)
