"""Turns an `OSError` into an error that names the path and the reason.

All modules of this package use this module, so that each failure, such as a full disk, always has the same message.
Errors about where a path leads are in `walk`."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from haft.contracts import CallError, Conflict, ToolFailed
from haft.files.printable import shown

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
    """The error to raise for an `OSError`: "`path` cannot be `deed`", and the reason."""
    if error.errno == errno.ELOOP:  # Comes only from O_NOFOLLOW: the file was replaced by a link.
        return Conflict(f"`{shown(path)}` became a link while it was being {deed}")
    reason = _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()
    return ToolFailed(f"`{shown(path)}` cannot be {deed}: {reason}")


@contextmanager
def translate_errors(path: str, deed: str) -> Iterator[None]:
    """Raise each `OSError` of the block as the error that `failed` returns."""
    try:
        yield
    except OSError as error:
        raise failed(path, deed, error) from error


def require_regular(path: str, mode: int) -> None:
    """Raise an error unless the mode is the mode of a regular file. Other files may block, have effects when opened, or
    be endless."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise ToolFailed(f"`{shown(path)}` is a directory", hint="use list_directory to see what is in it")
    raise ToolFailed(f"`{shown(path)}` is {kind_of(mode)}, not a regular file")


def kind_of(mode: int) -> str:
    """The kind of a file that is not regular, in words."""
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "a device"
    return "a link" if stat.S_ISLNK(mode) else "something else"


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """A value that changes when a file is replaced, written, or gets another mode."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
