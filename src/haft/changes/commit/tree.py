"""Access to a directory tree through descriptors: links are never followed, and nothing outside the tree is reached.

A `Tree` keeps descriptors of its root and of directories that it has reached. So even if someone renames a directory,
haft acts in the directory that it looked at before. Every change that a commit makes to a workspace goes through this
module.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

from haft.changes.commit.widened_modes import WidenedModes

_PATH: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
_REACH: Final = _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_OPEN: Final = 200
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2
_DAC_OVERRIDE: Final = 1


class Tree:
    """A directory and its content. All methods take paths relative to this directory."""

    def __init__(self, path: str, *, forced: bool = False, notes: WidenedModes | None = None) -> None:
        """With `forced`, the modes of our user's directories are widened if they forbid access; `restore` and `close`
        restore them. `notes` records each mode before it is widened, for recovery after a crash."""
        self._notes = notes
        self.path = path
        self._root = os.open(path, _REACH)
        self._open: OrderedDict[str, int] = OrderedDict()
        self._forced = forced and is_bound_by_modes()
        self.widened: dict[str, tuple[int, int]] = {}
        """By directory whose mode is widened: its original mode, and its inode."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def restore(self, beneath: str = "") -> None:
        """Restore the widened modes of all directories, or of those below `beneath`. Call this before directories are
        moved or get new modes: later a path may name another directory."""
        widened = [path for path in self.widened if not beneath or path.startswith(f"{beneath}/")]
        for path in sorted(widened, reverse=True):
            mode, inode = self.widened.pop(path)
            try:
                found = self.status(path)
                if found is not None and found.st_ino == inode:
                    set_mode(self, path, mode)
            except OSError as error:
                self.mark_unrestored(error)
        if widened:
            self.forget()  # With the restored modes, some of the open directories may no longer be used.

    def close(self) -> None:
        self.restore()
        if self._notes is not None:
            self._notes.clear()
        self.forget()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def forget(self) -> None:
        """Close the cached descriptors of directories. Call this after a move: a directory may have a new path now."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def directory(self, path: str) -> int:
        """A descriptor of a directory; the tree closes it. Raises `OSError` if the directory does not exist, or if a
        part of the path is a link."""
        if not path:
            return self._root
        known = self._open.get(path)
        if known is not None:
            self._open.move_to_end(path)
            return known
        words = path.split("/")
        if any(word in ("", ".", "..") for word in words):
            raise OSError(errno.EINVAL, "not a path beneath a directory", path)
        count, place = len(words) - 1, self._root
        while count and (above := self._open.get("/".join(words[:count]))) is None:
            count -= 1
        if count and above is not None:
            place = above
        # Open one name at a time, because no part of the path may be a link.
        for last in range(count, len(words)):
            here = "/".join(words[: last + 1])
            place = os.open(words[last], _REACH, dir_fd=place)
            if self._forced:
                try:
                    self._enter(here, place)
                except OSError:
                    os.close(place)
                    raise
            self._open[here] = place
        while len(self._open) > max(_MOST_OPEN, len(words)):
            os.close(self._open.popitem(last=False)[1])
        return place

    def _enter(self, path: str, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if found.st_mode & 0o700 != 0o700 and found.st_uid == os.geteuid():
            self.note(path, found)
            self.widened.setdefault(path, (stat.S_IMODE(found.st_mode), found.st_ino))
            _change_mode(descriptor, stat.S_IMODE(found.st_mode) | 0o700)

    def mode_before(self, path: str, inode: int) -> int | None:
        """The mode that a directory had before haft widened it; None if its mode is not widened."""
        mode, widened = self.widened.get(path, (0, None))
        return mode if widened == inode else None

    def note(self, path: str, found: os.stat_result) -> None:
        """Record the mode of `path` for recovery. Call this before the mode is widened."""
        if self._notes is not None:
            self._notes.note(self.path, path, stat.S_IMODE(found.st_mode), found.st_ino)

    def mark_unrestored(self, error: OSError) -> None:
        """Record that a widened mode could not be restored, so that recovery can restore it."""
        if self._notes is not None:
            self._notes.mark_unrestored(error)

    def allow_unnoted(self) -> None:
        """From now on, modes may be widened even if the disk has no room to record them."""
        if self._notes is not None:
            self._notes.is_required = False

    def at(self, path: str) -> tuple[int, str]:
        """The descriptor of a path's parent directory, and the last name of the path. The descriptor is valid until the
        tree is asked for another path."""
        above, name = os.path.split(path)
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "not a path beneath a directory", path)
        return self.directory(above), name

    def status(self, path: str) -> os.stat_result | None:
        """The lstat of a path; None if the path or a directory above it does not exist."""
        try:
            place, name = self.at(path)
            return os.stat(name, dir_fd=place, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def read(self, path: str) -> int:
        """Open a regular file for reading; the caller closes the descriptor."""
        place, name = self.at(path)
        descriptor = os.open(name, _READ, dir_fd=place)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a regular file", path)
        return descriptor

    def link_target(self, path: str) -> str:
        place, name = self.at(path)
        return os.readlink(name, dir_fd=place)

    def proc_path(self, path: str) -> bytes:
        """A short path in `/proc` that leads to a path of any length. It is valid until the tree is asked for another
        path. It may end at a link, which the caller must not follow."""
        place, name = self.at(path)
        return os.fsencode(f"/proc/self/fd/{place}/") + os.fsencode(name)

    def children(self, path: str) -> list[tuple[str, os.stat_result]]:
        """The names in a directory, in byte order, each with its lstat."""
        descriptor = os.open(".", _LIST, dir_fd=self.directory(path))
        try:
            with os.scandir(descriptor) as found:
                some = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
        finally:
            os.close(descriptor)
        return sorted(some, key=lambda pair: os.fsencode(pair[0]))

    def walk(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """All paths below a directory, each with its lstat, and each directory before its content."""
        waiting = [path]
        while waiting:
            here = waiting.pop()
            below = []
            for name, status in self.children(here):
                inner = f"{here}/{name}" if here else name
                yield inner, status
                if stat.S_ISDIR(status.st_mode):
                    below.append(inner)
            waiting += reversed(below)


@contextlib.contextmanager
def open_parents(source: Tree, path: str, target: Tree, onto: str) -> Iterator[tuple[int, str, int, str]]:
    """For the source and the target of a move or link: the descriptor of the parent directory, and the name in it. The
    first descriptor is a duplicate, because the tree may close the original when it opens the second."""
    from_place, from_name = source.at(path)
    held = os.dup(from_place)
    try:
        yield (held, from_name, *target.at(onto))
    finally:
        os.close(held)


def move_in(source: Tree, path: str, target: Tree, onto: str) -> None:
    """Move a file or directory to the path `onto`. Raises `FileExistsError` if something is already there."""
    call = _renameat2()
    with open_parents(source, path, target, onto) as (from_place, from_name, to_place, to_name):
        if call is not None:
            if call(from_place, os.fsencode(from_name), to_place, os.fsencode(to_name), _RENAME_NOREPLACE) == 0:
                return
            number = _errno()
            if number not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise OSError(number, os.strerror(number), onto)
        if target.status(onto) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), onto)
        os.rename(from_name, to_name, src_dir_fd=from_place, dst_dir_fd=to_place)


def rename(source: Tree, path: str, target: Tree, onto: str) -> None:
    """Move a file or directory. Replaces a file, but never a directory with content."""
    with open_parents(source, path, target, onto) as (from_place, from_name, to_place, to_name):
        os.rename(from_name, to_name, src_dir_fd=from_place, dst_dir_fd=to_place)


def exchange(source: Tree, path: str, target: Tree, onto: str) -> bool:
    """Exchange the files at two paths atomically. Returns False if the system cannot do that."""
    call = _renameat2()
    if call is None:
        return False
    with open_parents(source, path, target, onto) as (from_place, from_name, to_place, to_name):
        if call(from_place, os.fsencode(from_name), to_place, os.fsencode(to_name), _RENAME_EXCHANGE) == 0:
            return True
        number = _errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EXDEV, errno.EOPNOTSUPP, errno.EPERM):
        return False
    raise OSError(number, os.strerror(number), onto)


def _errno() -> int:
    import ctypes

    return ctypes.get_errno()


_found: list[Callable[..., int] | None] = []


def _renameat2() -> Callable[..., int] | None:
    if not _found:
        import ctypes

        try:
            function = ctypes.CDLL(None, use_errno=True).renameat2
            function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
            _found.append(function)
        except (OSError, AttributeError):
            _found.append(None)
    return _found[0]


def set_mode(tree: Tree, path: str, mode: int) -> None:
    """chmod, without following a link."""
    place, name = tree.at(path)
    descriptor = os.open(name, _PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            _change_mode(descriptor, mode)
    finally:
        os.close(descriptor)


def set_owner(tree: Tree, path: str, uid: int, gid: int) -> None:
    """chown, without following a link. Does nothing if this process may not change the owner."""
    place, name = tree.at(path)
    with contextlib.suppress(PermissionError):
        os.chown(name, uid, gid, dir_fd=place, follow_symlinks=False)


def set_time(tree: Tree, path: str, mtime_ns: int) -> None:
    """Set the mtime of a file or link; the atime stays."""
    place, name = tree.at(path)
    found = os.stat(name, dir_fd=place, follow_symlinks=False)
    os.utime(name, ns=(found.st_atime_ns, mtime_ns), dir_fd=place, follow_symlinks=False)


@functools.cache
def is_bound_by_modes() -> bool:
    """Whether permission bits can keep this process from using files of its own user. They do not stop root, unless a
    container took away root's capability to ignore them."""
    if os.geteuid() != 0:
        return True
    with contextlib.suppress(OSError, StopIteration), open("/proc/self/status", "rb") as file:
        held = next(line for line in file if line.startswith(b"CapEff:"))
        return not int(held.split()[1], 16) & 1 << _DAC_OVERRIDE
    return False


def _change_mode(descriptor: int, mode: int) -> None:
    if _PATH == os.O_RDONLY:
        os.fchmod(descriptor, mode)
    else:
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # fchmod does not accept an O_PATH descriptor.
