"""Everything about a tree that an undo has to bring back, and how two trees differ.

Owners and times count, inodes and access times do not. What may not be read is opened for the moment and closed again:
its ctime moves by that, its other times do not.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import stat
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

KINDS = {
    stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket", stat.S_IFCHR: "character device", stat.S_IFBLK: "block device",
}  # fmt: skip
CHUNK = 1 << 20


class Found(NamedTuple):
    """What lies at one path."""

    kind: str
    mode: int
    owner: tuple[int, int]
    size: int = 0
    mtime_ns: int | None = None
    """Of files."""
    content: str | bytes = ""
    """The digest of a file, the target of a link, the number of a device."""
    attributes: tuple[tuple[str, bytes], ...] = ()
    """Extended ones, but for what security modules give and overlays leave."""
    names: tuple[bytes, ...] = ()
    """Of a file with more than one: all of them in this tree, where they were asked for."""


def fingerprint(directory: str | bytes | os.PathLike[str], *, links: bool = False) -> dict[bytes, Found]:
    """Every path beneath, relative to `directory`; `links` also tells which names are one file."""
    found: dict[bytes, Found] = {}
    shared: dict[tuple[int, int], list[bytes]] = {}
    top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for path, status, each in _beneath(top, b""):
            found[path] = each
            if links and each.kind == "file" and status.st_nlink > 1:
                shared.setdefault((status.st_dev, status.st_ino), []).append(path)
    finally:
        os.close(top)
    for names in shared.values():
        for path in names:
            found[path] = found[path]._replace(names=tuple(sorted(names)))
    return found


def difference(
    one: dict[bytes, Found], other: dict[bytes, Found], *, ignoring: Collection[str] = (), most: int = 50
) -> list[str]:
    """A line for everything in which they differ; none when they are the same."""
    lines = []
    for path in sorted(one.keys() | other.keys()):
        before, after = one.get(path), other.get(path)
        if before is None or after is None:
            missing, there = ("before", after) if before is None else ("after", before)
            assert there is not None
            lines.append(f"{path!a}: a {there.kind}, not there {missing}")
            continue
        lines += [
            f"{path!a}: {name} was {_shown(name, was)}, is {_shown(name, now)}"
            for name, was, now in zip(Found._fields, before, after, strict=True)
            if was != now and name not in ignoring
        ]
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]


def _shown(name: str, value: object) -> str:
    return f"{value:04o}" if name == "mode" else ascii(value)


def _beneath(directory: int, above: bytes) -> Iterator[tuple[bytes, os.stat_result, Found]]:
    """By descriptors, so that no path is too long and no link is followed."""
    for name in sorted(os.listdir(directory)):
        raw = os.fsencode(name)
        status = os.lstat(raw, dir_fd=directory)
        yield above + raw, status, _found(directory, raw, status)
        if stat.S_ISDIR(status.st_mode):
            with _opened(directory, raw, status, 0o500) as inside:
                yield from _beneath(inside, above + raw + b"/")


def _found(directory: int, name: bytes, status: os.stat_result) -> Found:
    kind, mode = KINDS[stat.S_IFMT(status.st_mode)], stat.S_IMODE(status.st_mode)
    owner, attributes = (status.st_uid, status.st_gid), _attributes(directory, name, status)
    if kind == "file":
        content = _digest(directory, name, status)
        return Found(kind, mode, owner, status.st_size, status.st_mtime_ns, content, attributes)
    content = os.readlink(name, dir_fd=directory) if kind == "link" else ""
    if kind.endswith("device"):
        content = str(status.st_rdev)
    return Found(kind, mode, owner, content=content, attributes=attributes)


def _attributes(directory: int, name: bytes, status: os.stat_result) -> tuple[tuple[str, bytes], ...]:
    if sys.platform != "linux" or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return ()
    with _opened(directory, name, status, 0o400) as inside:
        try:
            names = [each for each in sorted(os.listxattr(inside)) if each.startswith(("user.", "system.posix_acl"))]
            return tuple((each, os.getxattr(inside, each)) for each in names if not each.startswith("user.overlay."))
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            return ()


def _digest(directory: int, name: bytes, status: os.stat_result) -> str:
    digest = hashlib.sha256()
    with _opened(directory, name, status, 0o400) as descriptor:
        while data := os.read(descriptor, CHUNK):
            digest.update(data)
    return digest.hexdigest()


@contextlib.contextmanager
def _opened(directory: int, name: bytes, status: os.stat_result, needed: int) -> Iterator[int]:
    """To be read, and looked into while it is open; with the `needed` bits for as long as that takes."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    mode = stat.S_IMODE(status.st_mode)
    lent = _is_bound_by_modes() and mode & needed != needed
    if lent:
        os.chmod(name, mode | needed, dir_fd=directory)
    try:
        descriptor = os.open(name, flags, dir_fd=directory)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        if lent:
            os.chmod(name, mode, dir_fd=directory)


@functools.cache
def _is_bound_by_modes() -> bool:
    """Root is not, unless the capability was taken from it."""
    if os.geteuid() != 0:
        return True
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("CapEff:"))
    return not int(line.split()[1], 16) >> 1 & 1  # CAP_DAC_OVERRIDE
