"""What lies at a path, as an `Entry`: one look, with the content of files by digest."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import replace

from haft.changes.committing.entry import UNREADABLE, Entry, entry_from
from haft.changes.committing.places import Tree, set_mode

_CHUNK = 1 << 20


class Stopped(Exception):
    """The call was cancelled before anything was changed."""


def look(
    tree: Tree,
    path: str,
    status: os.stat_result | None = None,
    *,
    forced: bool = False,
    stopped: Callable[[], bool] | None = None,
) -> Entry | None:
    """What lies there; None where there is nothing. `forced` also reads files of ours that may not be read. `stopped`
    is asked while reading: files can be very large."""
    if status is None:
        status = tree.status(path)
        if status is None:
            return None
    if stat.S_ISREG(status.st_mode):
        return _look_into(tree, path, status, forced, stopped)
    if stat.S_ISLNK(status.st_mode):
        return entry_from(status, tree.link_target(path))
    return entry_from(status)


def _look_into(
    tree: Tree, path: str, status: os.stat_result, forced: bool, stopped: Callable[[], bool] | None
) -> Entry | None:
    widened = False
    try:
        descriptor = tree.read(path)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
                return look(tree, path, stopped=stopped)  # It was replaced between two steps.
            raise
        if not forced or status.st_uid != os.geteuid():
            return entry_from(status, UNREADABLE)
        widened = True
        tree.note(path, status)
        set_mode(tree, path, stat.S_IMODE(status.st_mode) | 0o400)
        try:
            descriptor = tree.read(path)
        finally:
            set_mode(tree, path, stat.S_IMODE(status.st_mode))
    try:
        entry = entry_from(status, digest_of_descriptor(descriptor, stopped))
        return replace(entry, ctime_ns=0) if widened else entry
    finally:
        os.close(descriptor)


def digest_of_descriptor(descriptor: int, stopped: Callable[[], bool] | None = None) -> str:
    """Of all that a file holds from where the descriptor stands."""
    digest = hashlib.sha256()
    while chunk := os.read(descriptor, _CHUNK):
        digest.update(chunk)
        if stopped is not None and stopped():
            raise Stopped
    return digest.hexdigest()
