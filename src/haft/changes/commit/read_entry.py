"""Reading the state of a path as an `Entry`, with the digest of a file's content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of
from haft.changes.commit.entry import UNREADABLE, Entry, entry_from
from haft.changes.commit.tree import Tree, set_mode
from haft.values import replace

_CHUNK = 1 << 20


class CallStopped(Exception):
    """The call was cancelled before anything was changed."""


def read_entry(
    tree: Tree,
    path: str,
    status: os.stat_result | None = None,
    *,
    forced: bool = False,
    stopped: Callable[[], bool] | None = None,
) -> Entry | None:
    """The state of a path; None if the path does not exist. With `forced`, files of our user are read even if their
    mode forbids it. `stopped` is called while reading, since files can be very large. If `stopped` returns True, raises
    `CallStopped`."""
    if status is None:
        status = tree.status(path)
        if status is None:
            return None
    if stat.S_ISREG(status.st_mode):
        return _read_file(tree, path, status, forced, stopped)
    target = tree.link_target(path) if stat.S_ISLNK(status.st_mode) else None
    mode = tree.mode_before(path, status.st_ino)
    entry = entry_from(status, target, _attributes(tree, path, status, forced, mode))
    return entry if mode is None else replace(entry, mode=mode)


def _attributes(tree: Tree, path: str, status: os.stat_result, forced: bool, mode: int | None) -> str | None:
    """The extended attributes of a path that is not a regular file; None if they may not be read or the path is gone.
    If haft has widened the mode of a directory, `mode` is the mode before that."""
    try:
        return attributes_of(tree.proc_path(path), mode)
    except UnreadableAttributes:
        if not forced or status.st_uid != os.geteuid() or not stat.S_ISDIR(status.st_mode):
            return None
        with _widened(tree, path, status):
            return attributes_of(tree.proc_path(path), stat.S_IMODE(status.st_mode))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


@contextlib.contextmanager
def _widened(tree: Tree, path: str, status: os.stat_result) -> Iterator[None]:
    """Within this context, the mode of the path is widened so that its owner may read it."""
    tree.note(path, status)
    set_mode(tree, path, stat.S_IMODE(status.st_mode) | 0o400)
    try:
        yield
    finally:
        try:
            set_mode(tree, path, stat.S_IMODE(status.st_mode))
        except OSError as error:
            tree.mark_unrestored(error)
            raise


def _read_file(
    tree: Tree, path: str, status: os.stat_result, forced: bool, stopped: Callable[[], bool] | None
) -> Entry | None:
    widened = False
    try:
        descriptor = tree.read(path)
        attributes = _attributes_of(descriptor)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
                return read_entry(tree, path, stopped=stopped)  # Someone replaced the file after `status` was read.
            raise
        if not forced or status.st_uid != os.geteuid():
            return entry_from(status, UNREADABLE)
        widened = True
        with _widened(tree, path, status):
            descriptor = tree.read(path)
            attributes = _attributes_of(descriptor, stat.S_IMODE(status.st_mode))
    try:
        entry = entry_from(status, digest_of_descriptor(descriptor, stopped), attributes)
        return replace(entry, ctime_ns=0) if widened else entry
    finally:
        os.close(descriptor)


def _attributes_of(descriptor: int, mode: int | None = None) -> str | None:
    """The extended attributes of an open file; None if they may not be read. If haft has widened the file's mode,
    `mode` is the mode before that."""
    try:
        return attributes_of(descriptor, mode)
    except UnreadableAttributes:  # A capability of this process allows opening the file, but not reading attributes.
        return None
    except BaseException:
        os.close(descriptor)
        raise


def digest_of_descriptor(descriptor: int, stopped: Callable[[], bool] | None = None) -> str:
    """The digest of a file from the descriptor's position to the end."""
    digest = hashlib.sha256()
    while chunk := os.read(descriptor, _CHUNK):
        digest.update(chunk)
        if stopped is not None and stopped():
            raise CallStopped
    return digest.hexdigest()
