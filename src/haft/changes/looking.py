"""What lies at a path, as an `Entry`: one look, with the content of files by digest."""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from haft.changes.entry import UNREADABLE, Entry, entry_from
from haft.changes.places import Tree, set_mode

_CHUNK = 1 << 20


def look(tree: Tree, path: str, status: os.stat_result | None = None, *, forced: bool = False) -> Entry | None:
    """What lies there; None where there is nothing. `forced` also reads files of ours that may not be read."""
    if status is None:
        status = tree.status(path)
        if status is None:
            return None
    if stat.S_ISREG(status.st_mode):
        return _look_into(tree, path, status, forced=forced)
    if stat.S_ISLNK(status.st_mode):
        return entry_from(status, tree.link_target(path))
    return entry_from(status)


def _look_into(tree: Tree, path: str, status: os.stat_result, *, forced: bool) -> Entry | None:
    try:
        descriptor = tree.read(path)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
                return look(tree, path)  # It was replaced between two steps.
            raise
        if not forced or status.st_uid != os.geteuid():
            return entry_from(status, UNREADABLE)
        set_mode(tree, path, stat.S_IMODE(status.st_mode) | 0o400)
        try:
            descriptor = tree.read(path)
        finally:
            set_mode(tree, path, stat.S_IMODE(status.st_mode))
    try:
        return entry_from(status, digest_of_descriptor(descriptor))
    finally:
        os.close(descriptor)


def digest_of_descriptor(descriptor: int) -> str:
    """Of all that a file holds from where the descriptor stands."""
    digest = hashlib.sha256()
    while chunk := os.read(descriptor, _CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
