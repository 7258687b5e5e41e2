"""Access to a directory tree through descriptors: links are never followed, and nothing outside the tree is reached.

A `Tree` keeps its root and the directories it has reached open. So even if directories are renamed meanwhile, a step
acts in the directory that was inspected. Every change that a commit makes to a workspace goes through this module.
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
    """A directory and its content, by relative paths."""

    def __init__(self, path: str, *, forced: bool = False, notes: WidenedModes | None = None) -> None:
        """`forced` opens our own directories even if their mode forbids it, until `restore`. `notes` records each such
        mode for recovery after a crash."""
        self._notes = notes
        self.path = path
        self._root = os.open(path, _REACH)
        self._open: OrderedDict[str, int] = OrderedDict()
        self._forced = forced and is_bound_by_modes()
        self.widened: dict[str, tuple[int, int]] = {}
        """Directories with a widened mode: the original mode, and the inode."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def restore(self, beneath: str = "") -> None:
        """Restore the widened modes of all directories, or of those below `beneath`, innermost first. Call it before
        files are moved or get other modes: afterwards the paths may name other files."""
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
            self.forget()  # Directories below them can no longer be reached.

    def close(self) -> None:
        self.restore()
        if self._notes is not None:
            self._notes.clear()
        self.forget()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def forget(self) -> None:
        """Close the cached directories: after a move they may be elsewhere."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def directory(self, path: str) -> int:
        """A descriptor of a directory, owned by the tree. Raises `OSError` if it does not exist, or a link is on the
        way."""
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
        # One name at a time: no directory on the way may be a link.
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
        """The mode that a directory had before haft widened it, and will have again; None if haft did not."""
        mode, widened = self.widened.get(path, (0, None))
        return mode if widened == inode else None

    def note(self, path: str, found: os.stat_result) -> None:
        """Note a mode before it is widened."""
        if self._notes is not None:
            self._notes.note(self.path, path, stat.S_IMODE(found.st_mode), found.st_ino)

    def mark_unrestored(self, error: OSError) -> None:
        """Record that a widened mode could not be restored."""
        if self._notes is not None:
            self._notes.mark_unrestored(error)

    def allow_unnoted(self) -> None:
        """Allow widening modes even if there is no room for a note."""
        if self._notes is not None:
            self._notes.is_required = False

    def at(self, path: str) -> tuple[int, str]:
        """The descriptor of the parent directory, and the name in it. The descriptor is valid until the next call."""
        above, name = os.path.split(path)
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "not a path beneath a directory", path)
        return self.directory(above), name

    def status(self, path: str) -> os.stat_result | None:
        """The lstat of a path; None if it, or a directory on the way, does not exist."""
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
        """A short `/proc` path for a path of any length. It is valid until the next directory is reached; the user must
        not follow a link at its end."""
        place, name = self.at(path)
        return os.fsencode(f"/proc/self/fd/{place}/") + os.fsencode(name)

    def children(self, path: str) -> list[tuple[str, os.stat_result]]:
        """The names in a directory with their lstat, in byte order."""
        descriptor = os.open(".", _LIST, dir_fd=self.directory(path))
        try:
            with os.scandir(descriptor) as found:
                some = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
        finally:
            os.close(descriptor)
        return sorted(some, key=lambda pair: os.fsencode(pair[0]))

    def walk(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """All paths below a directory, parents before their content."""
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
    """Descriptor and name of both ends of a move. The first descriptor is duplicated, because reaching the second may
    close it."""
    from_place, from_name = source.at(path)
    held = os.dup(from_place)
    try:
        yield (held, from_name, *target.at(onto))
    finally:
        os.close(held)


def move_in(source: Tree, path: str, target: Tree, onto: str) -> None:
    """Move to an unused path. Raises `FileExistsError` if the path is used."""
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
    """Exchange two paths atomically. False if the system cannot do that."""
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
    """chown, if we may."""
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
    """Whether modes can keep this process out of its own files. They cannot stop root, unless a container removed that
    capability."""
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
