"""Exact copies of files: content with its holes, mode, owner if we may set it, times, extended attributes.

Used if a file cannot be renamed to its new path, because it is on another filesystem or must also stay where it is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
from typing import Final

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of, set_attributes
from haft.changes.commit.tree import Tree, open_parents, set_mode, set_owner, set_time

_FICLONE: Final = 0x40049409
_PIECE: Final = 1 << 24
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(source: Tree, path: str, target: Tree, onto: str) -> None:
    """Copy a file or directory with its content to an unused path."""
    status = source.status(path)
    if status is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    _copy_one(source, path, status, target, onto)
    if not stat.S_ISDIR(status.st_mode):
        return
    later = [(onto, status)]
    names: dict[tuple[int, int], str] = {}
    for inner, found in source.walk(path):
        place = onto + inner[len(path) :]
        known = names.get((found.st_dev, found.st_ino)) if found.st_nlink > 1 else None
        if known is not None and not stat.S_ISDIR(found.st_mode):
            link(target, known, target, place)
            continue
        names[found.st_dev, found.st_ino] = place
        _copy_one(source, inner, found, target, place)
        if stat.S_ISDIR(found.st_mode):
            later.append((place, found))
    for place, found in reversed(later):
        _copy_attributes(source, path + place[len(onto) :], target, place)
        set_mode(target, place, stat.S_IMODE(found.st_mode))  # Last: a read-only directory could not be filled.


def _copy_one(source: Tree, path: str, status: os.stat_result, target: Tree, onto: str) -> None:
    place, name = target.at(onto)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(name, mode | 0o700, dir_fd=place)
        set_owner(target, onto, status.st_uid, status.st_gid)
        return
    if stat.S_ISLNK(status.st_mode):
        os.symlink(source.link_target(path), name, dir_fd=place)
        set_owner(target, onto, status.st_uid, status.st_gid)
        set_time(target, onto, status.st_mtime_ns)
        return
    if not stat.S_ISREG(status.st_mode):
        os.mknod(name, status.st_mode, status.st_rdev, dir_fd=place)
        set_owner(target, onto, status.st_uid, status.st_gid)
        _copy_attributes(source, path, target, onto)
        set_mode(target, onto, mode)
        return
    inlet = source.read(path)
    try:
        outlet = os.open(name, _NEW, 0o600, dir_fd=place)
        try:
            copy_content(inlet, outlet)
            with contextlib.suppress(PermissionError):
                os.fchown(outlet, status.st_uid, status.st_gid)
            with contextlib.suppress(UnreadableAttributes):  # After `fchown`, which would remove capabilities.
                set_attributes(outlet, attributes_of(inlet))
            os.fchmod(outlet, mode)
            os.utime(outlet, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(outlet)
    finally:
        os.close(inlet)


def _copy_attributes(source: Tree, path: str, target: Tree, onto: str) -> None:
    with contextlib.suppress(UnreadableAttributes):
        set_attributes(target.proc_path(onto), attributes_of(source.proc_path(path)))


def link(source: Tree, known: str, target: Tree, onto: str) -> None:
    """Make a hard link of the file `known` at the unused path `onto`."""
    with open_parents(source, known, target, onto) as (from_place, from_name, to_place, to_name):
        os.link(from_name, to_name, src_dir_fd=from_place, dst_dir_fd=to_place, follow_symlinks=False)


def copy_content(inlet: int, outlet: int) -> None:
    """Copy a file's content into an empty file. Both share their blocks if the filesystem can do that; if not, holes
    are kept."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.ioctl(outlet, _FICLONE, inlet)
            return
    size = os.fstat(inlet).st_size
    at = 0
    while at < size:
        start, end = _next_piece(inlet, at, size)
        while start < end:
            part = os.pread(inlet, min(_PIECE, end - start), start)
            if not part:
                break
            view = memoryview(part)
            while view:
                written = os.pwrite(outlet, view, start)
                view, start = view[written:], start + written
        at = max(end, at + 1)
    os.ftruncate(outlet, size)


def _next_piece(descriptor: int, at: int, size: int) -> tuple[int, int]:
    """The start and end of the next range from `at` on that is not a hole."""
    try:
        start = os.lseek(descriptor, at, os.SEEK_DATA)
        return start, min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, size
        return at, size
