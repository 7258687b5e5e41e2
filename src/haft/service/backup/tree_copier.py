"""Copies directories of a state home into a backup, and back: content, modes, times, extended attributes, hard links.

A file that a previous backup has already, with the same size and time, becomes a hard link of it: files of a backup
never change, so a backup of an unchanged home writes almost nothing. Files that vanish meanwhile are left out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from typing import Final

from haft.values import dataclass

_VANISHED: Final = (errno.ENOENT, errno.ESTALE)


@dataclass(slots=True)
class Copied:
    """How much was copied."""

    files: int = 0
    bytes: int = 0
    linked: int = 0
    """Files that a previous backup had already."""


class TreeCopier:
    """Copies into one target. Copying the same directory again brings the copy up to date, and removes nothing."""

    def __init__(self, previous: str | None = None) -> None:
        """`previous` is the directory of the previous backup."""
        self._previous = previous
        self.done = Copied()

    def copy(self, source: str, target: str, below: str = "") -> None:
        """Copy a file or a directory with its content to the path `target`. `below` is its path in a backup."""
        names: dict[tuple[int, int], str] = {}
        try:
            self._copy(source, target, below, names)
        except OSError as error:
            if error.errno not in _VANISHED or os.path.lexists(source):
                raise

    def _copy(self, source: str, target: str, below: str, names: dict[tuple[int, int], str]) -> None:
        found = os.lstat(source)
        if not stat.S_ISDIR(found.st_mode):
            self._copy_file(source, target, below, found, names)
            return
        with contextlib.suppress(FileExistsError):
            os.mkdir(target, 0o700)
        with _readable(source, found, 0o500):
            inside = sorted(os.listdir(source))
        with _readable(source, found, 0o500):
            for name in inside:
                inner = os.path.join(source, name)
                try:
                    self._copy(inner, os.path.join(target, name), os.path.join(below, name), names)
                except OSError as error:
                    if error.errno not in _VANISHED or os.path.lexists(inner):
                        raise
        _copy_attributes(source, target, found)

    def _copy_file(
        self, source: str, target: str, below: str, found: os.stat_result, names: dict[tuple[int, int], str]
    ) -> None:
        if os.path.lexists(target):
            if _is_same(os.lstat(target), found):
                return
            os.unlink(target)
        first = names.get((found.st_dev, found.st_ino)) if found.st_nlink > 1 else None
        if first is not None and os.path.lexists(first):
            os.link(first, target, follow_symlinks=False)
            return
        names[found.st_dev, found.st_ino] = target
        if self._has_linked(target, below, found):
            return
        if stat.S_ISREG(found.st_mode):
            with _readable(source, found, 0o400):
                shutil.copyfile(source, target)
            self.done.files += 1
            self.done.bytes += found.st_size
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(source), target)
        elif stat.S_ISCHR(found.st_mode):  # In a layer, this says that a file is deleted.
            with contextlib.suppress(PermissionError):
                os.mknod(target, found.st_mode, found.st_rdev)
        else:
            return  # Sockets and pipes mean nothing without their processes.
        if os.path.lexists(target):
            _copy_attributes(source, target, found)

    def _has_linked(self, target: str, below: str, found: os.stat_result) -> bool:
        if self._previous is None or not stat.S_ISREG(found.st_mode):
            return False
        known = os.path.join(self._previous, below)
        try:
            if not _is_same(os.lstat(known), found):
                return False
            os.link(known, target, follow_symlinks=False)
        except OSError:
            return False
        self.done.linked += 1
        return True


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_mode, one.st_size, one.st_mtime_ns) == (other.st_mode, other.st_size, other.st_mtime_ns)


@contextlib.contextmanager
def _readable(path: str, found: os.stat_result, mode: int) -> Iterator[None]:
    """A context manager in which the owner may read a path, whatever its mode is."""
    if found.st_mode & mode == mode or os.geteuid() == 0:
        yield
        return
    os.chmod(path, stat.S_IMODE(found.st_mode) | mode)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(path, stat.S_IMODE(found.st_mode))


def _copy_attributes(source: str, target: str, found: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(target, found.st_uid, found.st_gid, follow_symlinks=False)
    with contextlib.suppress(PermissionError):  # An attribute that only root may set.
        shutil.copystat(source, target, follow_symlinks=False)
    if not stat.S_ISLNK(found.st_mode):
        os.chmod(target, stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
