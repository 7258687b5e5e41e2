"""A workspace on disk: the `Workspace` port, through which tools in this process access files.

`Root` is a directory and the operations on files below it. Each operation is one `walk` to the file, which cannot leave
the root, and one system call there, which does not follow links. A link that leads to a path inside the root works; a
path that leads out raises `PathEscapes`. Nothing stays open between two operations.

`Root` does not decide whether a tool may access a path (policy does), and it does not confine processes such as a
shell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

from haft.contracts import ToolFailed, WrittenFile
from haft.files.failures import identity_of, require_regular, translate_errors
from haft.files.file_replacement import replace_file, require_replaceable
from haft.files.printable import shown
from haft.files.walk import Missing, Walk

# O_NONBLOCK: if another process replaces the file by a pipe between two steps, opening must not hang.
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Root:
    """The files below one directory. Paths are relative to this directory, or absolute and below this directory."""

    __slots__ = ("_aliases", "_is_view", "_masked", "_start")

    def __init__(self, path: str | os.PathLike[str], masked: Iterable[str] = ()) -> None:
        """`masked` are absolute paths that are refused, together with everything below them."""
        real = os.path.realpath(path)
        inside = real.rstrip("/") + "/"
        self._masked = tuple(each.removeprefix(inside) for each in masked if each.startswith(inside))
        # The real path comes first: walks start there. People and links may use the other one.
        self._aliases = (real, os.path.abspath(path))
        self._start = real
        self._is_view = False

    @property
    def root(self) -> str:
        """The real path of the directory."""
        return self._aliases[0]

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading. Pipes, devices and the like are refused, and never block."""
        with self._walk(path) as place, translate_errors(path, "read"):
            status = place.status()
            if status is None:
                raise place.nothing_there()
            # Checked before opening, since opening a device can have an effect; and after, since it may be replaced.
            require_regular(path, status.st_mode)
            descriptor = os.open(place.name, _READ, dir_fd=place.directory)
            try:
                require_regular(path, os.fstat(descriptor).st_mode)
                return os.fdopen(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise

    def open_directory(self, path: str) -> int:
        """Open a directory for listing; the caller closes the descriptor."""
        with self._walk(path) as place, translate_errors(path, "listed"):
            try:
                return os.open(place.name, _LIST, dir_fd=place.directory)
            except FileNotFoundError:
                raise place.nothing_there() from None
            except NotADirectoryError:
                raise ToolFailed(f"`{shown(path)}` is not a directory", hint="use read_file to see a file") from None

    def replace(self, path: str, content: bytes, *, expect: Any = None) -> WrittenFile:
        """Write a whole file atomically, and make missing directories. `file_replacement` says which attributes
        stay."""
        with self._walk(path, "make") as place, translate_errors(path, "written"):
            try:
                created = replace_file(place, content, expect)
            except BaseException:
                place.unmake()
                raise
            return WrittenFile(place.where, created, tuple(made for _, _, made in place.made))

    def prepare(self, path: str, *, expect: Any = None) -> WrittenFile:
        """The result that `replace` would have, without writing; raises the same errors."""
        with self._walk(path, "suppose") as place, translate_errors(path, "written"):
            before = require_replaceable(place, expect, is_in_view=self._is_view)
            where = place.where
        missing = []
        above = os.path.dirname(where)
        while above and self.identity(above) is None:
            missing.append(above)
            above = os.path.dirname(above)
        return WrittenFile(where, before is None, tuple(reversed(missing)))

    def identity(self, path: str) -> tuple[int, ...] | None:
        """A value that changes when the file changes; None if there is no file."""
        with self._walk(path, "suppose") as place, translate_errors(path, "examined"):
            status = place.status()
            return None if status is None else identity_of(status)

    def locate(self, path: str) -> str:
        """The path with all links resolved, relative to the root; the file itself need not exist."""
        if path == "." and os.path.isdir(self._start):
            return path  # Most calls work in the root itself.
        with self._walk(path, "suppose") as place:
            return place.where

    def seen_at(self, place: str, *, is_readonly: bool = False) -> Root:
        """The same files, accessed through another path, usually the path of a descriptor. With `is_readonly`, nothing
        can be written there."""
        other = Root.__new__(Root)
        other._is_view = is_readonly
        other._aliases, other._masked, other._start = self._aliases, self._masked, place
        return other

    def _walk(self, path: str, missing: Missing = "fail") -> Walk:
        return Walk(self._aliases, path, missing, self._masked, self._start)
