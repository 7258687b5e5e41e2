"""A workspace on disk: the `Workspace` port, for tools that are handed files instead of reaching for them.

`Root` is a directory and what may be done beneath it. Each operation is one `walk` to the place, which cannot leave the
root, and one system call at the place, which does not follow links. A link inside that leads inside works; whatever
leads out raises `PathEscapes`. Nothing is kept open between two operations.

It does not decide whether a tool may touch a path (that is policy), and it does not see processes: what a shell does is
not confined by this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

from haft.contracts import ToolFailed, WrittenFile
from haft.files.failures import identity_of, in_words, require_regular
from haft.files.replacing import replace_file, require_replaceable
from haft.files.showing import shown
from haft.files.walk import Missing, Walk

# O_NONBLOCK: a pipe put in the file's place between two steps must not hang us.
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Root:
    """The files beneath one directory. Paths are relative to it, or absolute and beneath it."""

    __slots__ = ("_aliases", "_masked", "_start")

    def __init__(self, path: str | os.PathLike[str], masked: Iterable[str] = ()) -> None:
        """`masked` are absolute paths that are refused, and everything below them."""
        real = os.path.realpath(path)
        inside = real.rstrip("/") + "/"
        self._masked = tuple(each.removeprefix(inside) for each in masked if each.startswith(inside))
        # The real path first: walks start there. The other is how people and links may also call it.
        self._aliases = (real, os.path.abspath(path))
        self._start = real

    @property
    def root(self) -> str:
        """The real path of the directory."""
        return self._aliases[0]

    def open(self, path: str) -> BinaryIO:
        """A regular file, for reading. Anything else (a pipe, a device) is refused, and never waited for."""
        with self._walk(path) as place, in_words(path, "read"):
            status = place.status()
            if status is None:
                raise place.nothing_there()
            # Looked at before it is opened, since opening a device can already act; and after, since it can be swapped.
            require_regular(path, status.st_mode)
            descriptor = os.open(place.name, _READ, dir_fd=place.directory)
            try:
                require_regular(path, os.fstat(descriptor).st_mode)
                return os.fdopen(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise

    def open_directory(self, path: str) -> int:
        """A descriptor of a directory, for listing; the caller closes it."""
        with self._walk(path) as place, in_words(path, "listed"):
            try:
                return os.open(place.name, _LIST, dir_fd=place.directory)
            except FileNotFoundError:
                raise place.nothing_there() from None
            except NotADirectoryError:
                raise ToolFailed(f"`{shown(path)}` is not a directory", hint="use read_file to see a file") from None

    def replace(self, path: str, content: bytes, *, expect: Any = None) -> WrittenFile:
        """Write a whole file in one step, making the directories it needs. See `replacing` for what is kept."""
        with self._walk(path, "make") as place, in_words(path, "written"):
            try:
                created = replace_file(place, content, expect)
            except BaseException:
                place.unmake()
                raise
            return WrittenFile(place.where, created, tuple(made for _, _, made in place.made))

    def prepare(self, path: str, *, expect: Any = None) -> WrittenFile:
        """What `replace` would do, without doing it; raises where it would."""
        with self._walk(path, "suppose") as place, in_words(path, "written"):
            before = require_replaceable(place, expect)
            where = place.where
        missing = []
        above = os.path.dirname(where)
        while above and self.identity(above) is None:
            missing.append(above)
            above = os.path.dirname(above)
        return WrittenFile(where, before is None, tuple(reversed(missing)))

    def identity(self, path: str) -> tuple[int, ...] | None:
        """What changes when the file does; None where there is none."""
        with self._walk(path, "suppose") as place, in_words(path, "examined"):
            status = place.status()
            return None if status is None else identity_of(status)

    def locate(self, path: str) -> str:
        """Where `path` really lies, links resolved; what does not exist lies where it would be made."""
        with self._walk(path, "suppose") as place:
            return place.where

    def seen_at(self, place: str) -> Root:
        """The same files as they are seen at another place: a descriptor's, mostly."""
        other = Root.__new__(Root)
        other._aliases, other._masked, other._start = self._aliases, self._masked, place
        return other

    def _walk(self, path: str, missing: Missing = "fail") -> Walk:
        return Walk(self._aliases, path, missing, self._masked, self._start)
