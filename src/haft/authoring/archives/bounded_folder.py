"""A folder that is filled from an archive of somebody else, with a limited number of regular files and directories.

Names are checked before a file is created, and sizes are counted while reading, since an archive can lie about them.
The folder must be empty at first, and only the caller may use it. The content of the files is not checked here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from haft.authoring.directories import make_directory
from haft.contracts import BadUsage
from haft.files import shown

DEEPEST: Final = 30
_PIECE: Final = 1 << 20
_LONGEST_PATH: Final = 1_000
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Bounds:
    """The largest number and the largest total size of the files that may be written."""

    files: int
    """The largest number of files and directories together."""
    bytes: int
    """The largest size of all files together."""


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes: ...


class BoundedFolder:
    """The folder into which an archive is unpacked. Counts the files and bytes that are written, and raises `BadUsage`
    if there are too many."""

    def __init__(self, folder: str, bounds: Bounds) -> None:
        self.folder = folder
        self._bounds = bounds
        self._files = 0
        self._bytes = 0
        self._made = {""}

    def directory(self, path: str) -> None:
        """Create a directory and its missing parents; each of them counts."""
        names = path.split("/")
        if len(names) > DEEPEST:
            raise BadUsage(f"`{shown(path[:200])}` is nested too deep: it is not installed")
        for end in range(1, len(names) + 1):
            above = "/".join(names[:end])
            if above not in self._made:
                self._count()
                try:
                    make_directory(os.path.join(self.folder, above))
                except (FileExistsError, NotADirectoryError):
                    raise BadUsage(f"`{shown(above)}` is both a file and a directory: it is not installed") from None
                self._made.add(above)

    def file(self, path: str, content: Readable, mode: int) -> None:
        """Write a file. It is executable if `mode` says so; the other bits of `mode` are ignored."""
        if os.path.dirname(path):
            self.directory(os.path.dirname(path))
        self._count()
        target = os.path.join(self.folder, path)
        try:
            descriptor = os.open(target, _NEW, 0o755 if mode & stat.S_IXUSR else 0o644)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise BadUsage(f"`{shown(path)}` is in it twice: it is not installed") from None
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) | (mode & stat.S_IXUSR) | 0o600)
            while piece := content.read(_PIECE):
                self._bytes += len(piece)
                if self._bytes > self._bounds.bytes:
                    raise BadUsage(f"it has more than {self._bounds.bytes:_} bytes: it is not installed")
                file.write(piece)

    def _count(self) -> None:
        self._files += 1
        if self._files > self._bounds.files:
            raise BadUsage(f"it has more than {self._bounds.files:_} files and directories: it is not installed")


def plain_path(path: str) -> str | None:
    """The path, without `.` names and a final `/`, if it is relative and stays inside its folder; else None."""
    names = [name for name in path.rstrip("/").split("/") if name != "."]
    if (
        not names
        or len(path) > _LONGEST_PATH
        or "\\" in path
        or not path.isprintable()
        or any(name in ("", "..") or len(os.fsencode(name)) > 255 for name in names)
    ):
        return None
    return "/".join(names)


def checked_path(path: str, left_out: Collection[str] = ()) -> str | None:
    """The path in the form that `plain_path` returns; None if a name in the path is in `left_out`. Raises `BadUsage` if
    the path could leave its folder."""
    found = plain_path(path)
    if found is None:
        raise BadUsage(f"it holds the name `{shown(path[:200])}`, which could leave its folder: it is not installed")
    return None if any(name in left_out for name in found.split("/")) else found
