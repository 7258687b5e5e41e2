"""Reads and writes files safely: a write replaces the whole file or changes nothing.

A link in place of a file is refused, and so is anything that is neither a file nor a folder. `workspace` checks the
folders that contain the file. There is no protection against a person who replaces folders while a command runs.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from cdd.refusals import Refused

LARGEST: Final = 16 * 1024 * 1024
"""The most bytes of a file that is read. A larger file is not a text that a person or an agent wrote."""

_SAFELY: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # O_NONBLOCK: opening a named pipe must not block


def is_folder(path: str) -> bool:
    """Whether a folder exists at the path. Raises `Refused` if a link, a file or anything else is there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(mode):
        raise Refused(f"{_near(path)} is a link, and cdd does not follow links.", "put a real folder in its place.")
    if not stat.S_ISDIR(mode):
        raise Refused(f"{_near(path)} is not a folder.", "move it away, or work in another directory.")
    return True


def make_folder(path: str) -> bool:
    """Make a folder if it does not exist. Returns whether the folder was made."""
    if is_folder(path):
        return False
    os.mkdir(path)
    return True


def read(path: str) -> bytes | None:
    """The content of a file; None if the file does not exist."""
    try:
        descriptor = _open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise Refused(f"{_near(path)} is larger than {LARGEST // 1024 // 1024} MiB.", "split it into smaller files.")
    return content


def text_of(content: bytes) -> str:
    """Bytes as text, with line feeds as the only line ends. Bytes that are not UTF-8 become U+FFFD."""
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def write(path: str, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file in one step, replacing a file or link of that name. The umask applies."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name[:40]}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def append(path: str, content: bytes) -> None:
    """Add whole lines to the end of a file. If its last line has no line end, one is added first. On a failure, nothing
    is added."""
    descriptor = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    with open(descriptor, "r+b", buffering=0) as file, _alone(descriptor):
        size = file.seek(0, os.SEEK_END)
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            content = b"\n" + content
        try:
            while content:
                content = content[os.write(descriptor, content) :]
            os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Lock a folder: only one cdd process at a time adds or removes entries of the folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with _alone(descriptor):
            yield
    finally:
        os.close(descriptor)


def sync_folder(folder: str) -> None:
    """Write a folder's entries to the disk, if the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _alone(descriptor: int) -> Iterator[None]:
    with suppress(OSError):  # some network file systems have no locks; each step is safe without a lock
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield  # closing the descriptor gives the lock back


def _open(path: str, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | _SAFELY, 0o666)
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.EMLINK):
            hint = "put the file itself in its place."
            raise Refused(f"{_near(path)} is a link, and cdd does not follow links.", hint) from None
        if problem.errno in (errno.EISDIR, errno.ENXIO):
            raise Refused(f"{_near(path)} is not a file.", "move it away and try again.") from None
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise Refused(f"{_near(path)} is not a file.", "move it away and try again.")


def _near(path: str) -> str:
    """The path relative to the current directory if it lies there; otherwise the path unchanged."""
    near = os.path.relpath(path)
    return path if near.startswith("..") else near
