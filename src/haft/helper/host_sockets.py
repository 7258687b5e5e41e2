"""Finds the paths of Unix sockets of the host, which must be covered: a process can connect to a socket even on a
read-only mount.

The kernel lists each socket by the path to which a process bound it, as this process sees the path in its own
namespaces. A container has other mounts than the host, so its paths are translated: to the path inside the file system,
and from there to every path at which that file system is mounted here. Only root may read the namespaces of other
users.

haft does not find sockets that were renamed, linked or moved with their directory, or bound by a relative path.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

_BOUND = re.compile(rb"^\S+: (?:\S+ +){6}(/.*)$", re.MULTILINE)
"""A line of /proc/net/unix for a socket that has a path."""

MAX_SOCKETS = 8_000_000
"""How many bytes of one of the kernel's tables are read at most: a call with network could make the table of sockets
very long."""

Mounts = list[tuple[str, str, str]]
"""For each mount: the device, the directory of this device that is mounted, and the mount point."""


class HostSockets:
    """The current paths of Unix sockets of the host."""

    def __init__(self) -> None:
        """Open the tables of the host's sockets. Must run before this process leaves the namespaces of the host."""
        self._proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._own: int | None = None
        with contextlib.suppress(OSError):
            self._own = os.open("/proc/self/net/unix", os.O_RDONLY | os.O_CLOEXEC)

    def paths(self, *, everywhere: bool) -> set[str]:
        """The paths of the host's sockets as this process sees them. With `everywhere`, sockets of containers are
        included, which is slower."""
        found: set[str] = set()
        if self._own is not None:
            os.lseek(self._own, 0, os.SEEK_SET)
            found = _names(_read(self._own))
        if everywhere:
            with open("/proc/self/mountinfo", "rb") as file:
                here = _mounts(file.read())
            for pid in self._one_of_each():
                with contextlib.suppress(OSError):
                    found |= _translated(
                        _names(self._table(pid, "net/unix")), _mounts(self._table(pid, "mountinfo")), here
                    )
        return found

    def close(self) -> None:
        """Close the descriptors of the host's `/proc`. Must run before a command starts: through these descriptors, the
        command could see the host's processes."""
        for descriptor in (self._proc, self._own):
            if descriptor is not None:
                os.close(descriptor)

    def _one_of_each(self) -> list[str]:
        """The pid of one process for each pair of a network namespace and a mount namespace. Namespaces that we may not
        read are left out."""
        found: dict[tuple[str, str], str] = {}
        for name in os.listdir(self._proc):
            if name.isdigit():
                with contextlib.suppress(OSError):
                    pair = tuple(os.readlink(f"{name}/ns/{kind}", dir_fd=self._proc) for kind in ("net", "mnt"))
                    found.setdefault((pair[0], pair[1]), name)
        return list(found.values())

    def _table(self, pid: str, name: str) -> bytes:
        file = os.open(f"{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        try:
            return _read(file)
        finally:
            os.close(file)


def _read(table: int) -> bytes:
    words = bytearray()
    while len(words) < MAX_SOCKETS and (part := os.read(table, 1 << 16)):
        words += part
    return bytes(words)


def _names(table: bytes) -> set[str]:
    return set(map(os.fsdecode, _BOUND.findall(table)))


def _mounts(table: bytes) -> Mounts:
    lines = [line.split(b" ") for line in table.splitlines()]  # A path may contain other whitespace.
    return [(os.fsdecode(words[2]), _unescaped(words[3]), _unescaped(words[4])) for words in lines]


def _unescaped(word: bytes) -> str:
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), word))


def _translated(names: set[str], theirs: Mounts, here: Mounts) -> set[str]:
    """The paths at which sockets can be seen in the mounts `here`, if `names` are their paths in the mounts
    `theirs`."""
    mounted = {point: (device, root) for device, root, point in theirs}  # The last mount at a point covers the others.
    shown: dict[tuple[str, str], list[str]] = {}
    for device, root, point in here:
        shown.setdefault((device, root), []).append(point)
    found: set[str] = set()
    for name in names:
        place = next((place for place in _above(name) if place in mounted), None)
        if place is None:
            continue
        device, root_there = mounted[place]
        inside = _moved(name, place, root_there)
        for root in _above(inside):
            found.update(_moved(inside, root, point) for point in shown.get((device, root), ()))
    return found


def _above(path: str) -> Iterator[str]:
    """The path, and every directory above it."""
    while path != "/":
        yield path
        path = os.path.dirname(path)
    yield path


def _moved(path: str, before: str, after: str) -> str:
    """The path with the directory `before` replaced by `after`."""
    return after.rstrip("/") + path.removeprefix(before.rstrip("/"))
