"""Watches directories for changes with Linux's inotify, instead of polling them.

The kernel watches inodes, but callers mean paths. So call `follow` again after each change: it watches the directories
that are at the paths by then. Changes by other machines on a network file system, and writes through a memory mapping,
are not reported.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

MAX_WATCHES: Final = 4_096
"""The limit of one `Watches`. The kernel counts the watches of all programs of a user together."""
_CLOSE_WRITE, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x8, 0x4, 0xC0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR, _MASK_ADD = 0x400, 0x800, 0x01000000, 0x20000000
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_MASK: Final = _CLOSE_WRITE | _ATTRIB | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR | _MASK_ADD
_MODIFY, _DONT_FOLLOW = 0x2, 0x02000000
_ANY_CHANGE: Final = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _DONT_FOLLOW
)
_EVENT: Final = struct.Struct("iIII")
_LARGEST_READ: Final = 65_536


class Watches:
    """A set of watched directories. Raises `OSError` if this system has no inotify. Use it from one thread."""

    def __init__(self) -> None:
        self._add, self._remove, self.descriptor = _opened()
        self._watched: dict[str, int] = {}
        self._paths: dict[int, set[str]] = {}
        """The paths of each watch: several paths may lead to one directory."""

    def follow(self, paths: Iterable[str]) -> tuple[set[str], set[str]]:
        """Watch the directories that are at these paths now, and no others. Returns the newly watched paths, and the
        paths that cannot be watched. A path without a directory is in neither result."""
        wanted = dict.fromkeys(paths)
        for path in self._watched.keys() - wanted.keys():
            self._forget(path)
        new, unwatched = set(), set()
        for path in wanted:
            watch = self._add(self.descriptor, path) if path in self._watched or self._has_room else -errno.ENOSPC
            if watch != self._watched.get(path):
                self._forget(path)
                if watch >= 0:
                    self._watched[path] = watch
                    self._paths.setdefault(watch, set()).add(path)
                    new.add(path)
            if watch < 0 and -watch not in (errno.ENOENT, errno.ENOTDIR):
                unwatched.add(path)
        return new, unwatched

    @property
    def _has_room(self) -> bool:
        return len(self._paths) < MAX_WATCHES

    def _forget(self, path: str) -> None:
        watch = self._watched.pop(path, None)
        if watch is not None:
            self._paths[watch].discard(path)
            if not self._paths[watch]:
                del self._paths[watch]
                self._remove(self.descriptor, watch)

    def changes(self) -> Iterator[tuple[str, str]] | None:
        """The changes since this method was last called. Each change is a directory and the name of the changed entry
        in it; the name is empty if the directory itself changed. None if the kernel lost changes because there were too
        many."""
        found: set[tuple[str, str]] = set()
        while data := self._read():
            at = 0
            while at < len(data):
                watch, mask, _cookie, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                if mask & _OVERFLOW:
                    return None
                name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
                paths = set(self._paths.get(watch, ()))
                found |= {(path, name) for path in paths}
                if mask & _IGNORED:  # The directory was removed, and its watch with it.
                    for path in paths:
                        del self._watched[path]
                    self._paths.pop(watch, None)
        return iter(found)

    def _read(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(self.descriptor, _LARGEST_READ)
        return b""

    def close(self) -> None:
        os.close(self.descriptor)


class Tripwire:
    """Tells whether any of many files has changed since it was added. Unlike `Watches`, it watches the files
    themselves, so that writes through another name of a file are noticed, and before the writer closes the file. Raises
    `OSError` if this system has no inotify."""

    def __init__(self) -> None:
        self._add, _remove, self._descriptor = _opened(_ANY_CHANGE)

    def add(self, path: str) -> int:
        """Watch the file or directory at a path, or the link itself. The same file gives the same number.
        Raises `OSError`, also if there are too many."""
        watch = self._add(self._descriptor, path)
        if watch < 0:
            raise OSError(-watch, os.strerror(-watch), path)
        return watch

    def is_intact(self) -> bool:
        """Whether nothing was reported. A report that was lost counts as one."""
        try:
            os.read(self._descriptor, _LARGEST_READ)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        """Stop watching."""
        os.close(self._descriptor)


def most_watches() -> int:
    """How many watches this user may have in all programs together."""
    with contextlib.suppress(OSError, ValueError), open("/proc/sys/fs/inotify/max_user_watches", "rb") as file:
        return int(file.read())
    return 0


def _opened(mask: int = _MASK) -> tuple[Callable[[int, str], int], Callable[[int, int], None], int]:
    """Open inotify. Returns a function that adds a watch and returns its number or the negated errno, a function that
    removes a watch, and the descriptor of inotify."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "there is no inotify on this platform")

    libc = ctypes.CDLL(None, use_errno=True)
    wanted = ctypes.c_uint32(mask)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "inotify is not available")

    def add(to: int, path: str) -> int:
        watch: int = libc.inotify_add_watch(to, os.fsencode(path), wanted)
        return watch if watch >= 0 else -ctypes.get_errno()

    def remove(of: int, watch: int) -> None:
        libc.inotify_rm_watch(of, watch)

    return add, remove, descriptor
