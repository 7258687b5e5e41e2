"""Walking a tree of any depth to read it, from directory to directory, without following links.

`scan` visits every directory in this way. `read_files` visits only the directories with files to read. If the mode of a
file or directory of our user forbids reading, the mode is widened only as long as needed: for a file, while the file is
opened; for a directory, while the walk is inside the directory. The mode is set through a descriptor, never by a name
that someone could exchange for a link. A note about the mode is written before, for recovery if haft is killed
meanwhile.

Only the innermost directories of the walk stay open, so that a deep tree does not use up all descriptors. Outer
directories are reached again by `..`, and their device and inode are checked.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import Final, Self

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of
from haft.values import dataclass

_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: if someone replaces the file by a pipe just before it is opened, opening must not block.
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_PIN: Final[int | None] = getattr(os, "O_PATH", None)
_MOST_OPEN: Final = 64
_SWAPPED: Final = (errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EISDIR)


Note = Callable[[str, int, int], None]
"""Called with a path, its mode and its inode before the mode is widened."""
NoteMode = Callable[[os.stat_result], None]


class Swapped(Exception):
    """Someone exchanged the path for another file during the walk. Whoever reads the whole tree must start again."""


@dataclass(slots=True)
class _Step:
    descriptor: int
    """The open directory; -1 while it is closed to save descriptors. Then `identity` is its device and inode."""
    mode: int | None
    """The mode to restore when the walk leaves the directory; None if it was not widened."""
    identity: tuple[int, int] = (0, 0)


class Descent:
    """A position in the tree below `root`. Use it as a context manager, which restores every widened mode at the
    end."""

    __slots__ = ("_names", "_note", "_steps")

    def __init__(self, root: str, note: Note | None = None) -> None:
        self._names: list[str] = []
        self._note = note
        self._steps = [_Step(*_open(root, None, _LIST, 0o500))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stack:  # Close every step, the deepest first, even if closing another one fails.
            for step in self._steps:
                stack.callback(_close_step, step)

    @property
    def descriptor(self) -> int:
        """The descriptor of the current directory."""
        return self._steps[-1].descriptor

    def attributes(self) -> str | None:
        """The extended attributes of the current directory; None if they may not be read."""
        return readable_attributes(self._steps[-1].descriptor, self._steps[-1].mode)

    def go(self, path: str) -> int:
        """Go to the directory `path` and return its descriptor. Raises `FileNotFoundError`, `PermissionError`, or
        `Swapped` if `path` is not a directory any more."""
        names = path.split("/") if path else []
        shared = 0
        for name, here in zip(names, self._names, strict=False):
            if name != here:
                break
            shared += 1
        while len(self._names) > shared:
            self._leave()
        for name in names[shared:]:
            self._enter(name)
        return self.descriptor

    def widen(self) -> None:
        """Widen the mode of the current directory. This is needed if haft can list the names in it, but cannot read the
        status of its files."""
        step = self._steps[-1]
        status = os.fstat(step.descriptor)
        mode = stat.S_IMODE(status.st_mode)
        if step.mode is not None or mode & 0o500 == 0o500 or not _may_widen(status):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self._note_mode(self._names, status)
        os.fchmod(step.descriptor, mode | 0o500)
        step.mode = mode

    def open_file(self, name: str) -> tuple[int, str | None]:
        """Open a file of the current directory for reading. Returns the descriptor, and the extended attributes or None
        if they may not be read. If necessary, the mode is widened and restored at once. The caller closes the
        descriptor and checks the kind of file."""
        descriptor, mode = self._open_here(name, _READ, 0o400)
        try:
            try:
                attributes = readable_attributes(descriptor, mode)
            finally:
                if mode is not None:
                    os.fchmod(descriptor, mode)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, attributes

    def _open_here(self, name: str, flags: int, bits: int) -> tuple[int, int | None]:
        def note_mode(status: os.stat_result) -> None:
            self._note_mode([*self._names, name], status)

        try:
            return _open(name, self.descriptor, flags, bits, note_mode)
        except PermissionError:
            self.widen()
            return _open(name, self.descriptor, flags, bits, note_mode)

    def _note_mode(self, names: list[str], status: os.stat_result) -> None:
        if self._note is not None and names:
            self._note("/".join(names), stat.S_IMODE(status.st_mode), status.st_ino)

    def _enter(self, name: str) -> None:
        self._steps.append(_Step(*self._open_here(name, _LIST, 0o500)))
        self._names.append(name)
        far = self._steps[max(0, len(self._steps) - _MOST_OPEN - 1)]
        # Never close a directory whose mode is widened: its descriptor is needed to restore the mode.
        if len(self._steps) > _MOST_OPEN and far.descriptor >= 0 and far.mode is None:
            far.identity = _identity(far.descriptor)
            os.close(far.descriptor)
            far.descriptor = -1

    def _leave(self) -> None:
        left, parent = self._steps.pop(), self._steps[-1]
        self._names.pop()
        try:
            if parent.descriptor < 0:
                parent.descriptor = os.open("..", _LIST, dir_fd=left.descriptor)
                if _identity(parent.descriptor) != parent.identity:
                    raise Swapped
        finally:
            _close_step(left)


def readable_attributes(place: int | bytes, mode: int | None = None) -> str | None:
    """The extended attributes of a descriptor or path; None if they may not be read. If haft has widened the mode,
    `mode` is the original mode."""
    try:
        return attributes_of(place, mode)
    except UnreadableAttributes:
        return None


def _close_step(step: _Step) -> None:
    if step.descriptor < 0:
        return
    try:
        if step.mode is not None:
            os.fchmod(step.descriptor, step.mode)
    finally:
        os.close(step.descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _open(
    name: str, directory: int | None, flags: int, bits: int, note_mode: NoteMode | None = None
) -> tuple[int, int | None]:
    """Open a path. Returns the descriptor, and the original mode if `bits` had to be added to the mode, otherwise
    None."""
    try:
        try:
            return os.open(name, flags, dir_fd=directory), None
        except PermissionError:
            return _open_widened(name, directory, flags, bits, note_mode)
    except OSError as error:
        if error.errno in _SWAPPED and directory is not None:
            raise Swapped from error
        raise


def _open_widened(
    name: str, directory: int | None, flags: int, bits: int, note_mode: NoteMode | None
) -> tuple[int, int]:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not _may_widen(status):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    mode = stat.S_IMODE(status.st_mode)
    if note_mode is not None:
        note_mode(status)
    if _PIN is None:
        os.chmod(name, mode | bits, dir_fd=directory, follow_symlinks=False)
        descriptor = os.open(name, flags, dir_fd=directory)
        if _identity(descriptor) != (status.st_dev, status.st_ino):
            os.close(descriptor)
            raise Swapped
        return descriptor, mode
    pin = os.open(name, _PIN | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        if _identity(pin) != (status.st_dev, status.st_ino):
            raise Swapped
        place = f"/proc/self/fd/{pin}"
        os.chmod(place, mode | bits)
        try:
            # Open through the pin, not by name, to get the file whose mode was widened. The pin's path in /proc is a
            # link, which O_NOFOLLOW would refuse.
            return os.open(place, flags & ~os.O_NOFOLLOW), mode
        except BaseException:
            os.chmod(place, mode)
            raise
    finally:
        os.close(pin)


def _may_widen(status: os.stat_result) -> bool:
    """Whether a widened mode could be restored exactly. It could not if the file has the set-group-ID bit and this
    process is not in the group, because the system then removes the bit. It is not checked whether our user owns the
    file: if another user owns the file, the system refuses to change the mode."""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    return not status.st_mode & stat.S_ISGID or status.st_gid in (os.getegid(), *os.getgroups())
