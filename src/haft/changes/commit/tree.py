"""Reaching into a tree through descriptors: no link is ever followed, and nothing outside the tree can be reached.

A `Tree` holds its root open, and the directories that were reached in it, so that whatever is renamed meanwhile, a step
lands in the directory that was looked at. All that a commit does to a workspace goes through here.
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
    """A directory and what lies beneath it, by paths relative to it."""

    def __init__(self, path: str, *, forced: bool = False, notes: WidenedModes | None = None) -> None:
        """`forced` lets us into directories of ours that their own mode keeps us out of, until `restore`. `opened`
        takes a note of each, for whoever comes after a crash."""
        self._notes = notes
        self.path = path
        self._root = os.open(path, _REACH)
        self._open: OrderedDict[str, int] = OrderedDict()
        self._forced = forced and is_bound_by_modes()
        self.widened: dict[str, tuple[int, int]] = {}
        """Directories whose mode was widened: what it was, and the inode."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def restore(self, beneath: str = "") -> None:
        """Put back the modes that were widened, of all or of what lies beneath a directory, the innermost first. To be
        done before things are moved about or given other modes: afterwards something else may lie there."""
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
            self.forget()  # What was reached through them cannot be any more.

    def close(self) -> None:
        self.restore()
        if self._notes is not None:
            self._notes.clear()
        self.forget()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def forget(self) -> None:
        """Close what was reached: after directories were moved, it lies elsewhere."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def directory(self, path: str) -> int:
        """A descriptor of a directory; it stays ours. `OSError` where there is none or a link is on the way."""
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
        # One name at a time: nothing on the way may be a link.
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

    def note(self, path: str, found: os.stat_result) -> None:
        """Before a mode is widened for a moment."""
        if self._notes is not None:
            self._notes.note(self.path, path, stat.S_IMODE(found.st_mode), found.st_ino)

    def mark_unrestored(self, error: OSError) -> None:
        """A mode that was widened could not be given back."""
        if self._notes is not None:
            self._notes.mark_unrestored(error)

    def allow_unnoted(self) -> None:
        """From here on a mode is widened even where there is no room for a note."""
        if self._notes is not None:
            self._notes.is_required = False

    def at(self, path: str) -> tuple[int, str]:
        """The directory that holds `path`, and its name there. The descriptor is good until the next one is asked
        for."""
        above, name = os.path.split(path)
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "not a path beneath a directory", path)
        return self.directory(above), name

    def status(self, path: str) -> os.stat_result | None:
        """None where there is nothing, or no directory on the way."""
        try:
            place, name = self.at(path)
            return os.stat(name, dir_fd=place, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def read(self, path: str) -> int:
        """A descriptor of a regular file, for reading; the caller closes it."""
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
        """A name for what lies at a path that the system takes in one piece, however long the path is. It is good until
        the next directory is reached; whoever uses it must not follow a link at its end."""
        place, name = self.at(path)
        return os.fsencode(f"/proc/self/fd/{place}/") + os.fsencode(name)

    def children(self, path: str) -> list[tuple[str, os.stat_result]]:
        """What a directory holds, in the order of its bytes."""
        descriptor = os.open(".", _LIST, dir_fd=self.directory(path))
        try:
            with os.scandir(descriptor) as found:
                some = [(entry.name, entry.stat(follow_symlinks=False)) for entry in found]
        finally:
            os.close(descriptor)
        return sorted(some, key=lambda pair: os.fsencode(pair[0]))

    def walk(self, path: str) -> Iterator[tuple[str, os.stat_result]]:
        """Everything beneath a directory, parents before what they hold, itself not among it."""
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
    """Both ends of a move: directory and name of each. Reaching the second may let go of the first, so that is held."""
    from_place, from_name = source.at(path)
    held = os.dup(from_place)
    try:
        yield (held, from_name, *target.at(onto))
    finally:
        os.close(held)


def move_in(source: Tree, path: str, target: Tree, onto: str) -> None:
    """Move one thing to where nothing is. `FileExistsError` where something is after all."""
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
    """Move one thing. Replaces a file, never a directory that holds something."""
    with open_parents(source, path, target, onto) as (from_place, from_name, to_place, to_name):
        os.rename(from_name, to_name, src_dir_fd=from_place, dst_dir_fd=to_place)


def exchange(source: Tree, path: str, target: Tree, onto: str) -> bool:
    """Put each in the other's place in one step. False where this system has no such step."""
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
    """chmod, of what lies there and never of what a link there leads to."""
    place, name = tree.at(path)
    descriptor = os.open(name, _PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            _change_mode(descriptor, mode)
    finally:
        os.close(descriptor)


def set_owner(tree: Tree, path: str, uid: int, gid: int) -> None:
    """chown, where we may."""
    place, name = tree.at(path)
    with contextlib.suppress(PermissionError):
        os.chown(name, uid, gid, dir_fd=place, follow_symlinks=False)


def set_time(tree: Tree, path: str, mtime_ns: int) -> None:
    """Of a file or link; when it was read last stays as it is."""
    place, name = tree.at(path)
    found = os.stat(name, dir_fd=place, follow_symlinks=False)
    os.utime(name, ns=(found.st_atime_ns, mtime_ns), dir_fd=place, follow_symlinks=False)


@functools.cache
def is_bound_by_modes() -> bool:
    """Whether modes keep us out of what is ours. Root they do not, unless a container took that from it."""
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
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # An O_PATH descriptor takes no fchmod.
