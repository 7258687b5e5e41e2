"""Words for what the operating system refuses: from `OSError` to an error that names the path and the reason.

Used by everything in this package, so that a full disk reads the same whoever meets it. What is about *where* a path
leads is not here: that is `walk`'s to say."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from haft.contracts import CallError, Conflict, ToolFailed
from haft.files.showing import shown

_REASONS: Final[dict[int, str]] = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be too large for its filesystem",
    errno.EACCES: "permission is denied",
    errno.EPERM: "the system does not permit it",
    errno.EROFS: "the filesystem is read-only",
    errno.ENAMETOOLONG: "a name in it is too long",
    errno.ENOENT: "it does not exist",
    errno.ENOTDIR: "a part of it is not a directory",
    errno.EISDIR: "it is a directory",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "the machine has too many open files",
    errno.EIO: "the disk reports an input/output error",
}


def failed(path: str, deed: str, error: OSError) -> CallError:
    """The error to raise after `error`: "`path` cannot be `deed`", and why."""
    if error.errno == errno.ELOOP:  # only ever from O_NOFOLLOW: what was no link a moment ago is one now
        return Conflict(f"`{shown(path)}` became a link while it was being {deed}")
    reason = _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()
    return ToolFailed(f"`{shown(path)}` cannot be {deed}: {reason}")


@contextmanager
def in_words(path: str, deed: str) -> Iterator[None]:
    """Whatever the system refuses inside is raised as `failed` says it."""
    try:
        yield
    except OSError as error:
        raise failed(path, deed, error) from error


def require_regular(path: str, mode: int) -> None:
    """Raise unless `mode` is a regular file's. Anything else may block, act when opened, or never end."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise ToolFailed(f"`{shown(path)}` is a directory", hint="use list_directory to see what is in it")
    raise ToolFailed(f"`{shown(path)}` is {kind_of(mode)}, not a regular file")


def kind_of(mode: int) -> str:
    """What a mode that is no regular file's says it is, in words."""
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return "a link" if stat.S_ISLNK(mode) else "something else"


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file is replaced, written to, or has its mode changed."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
