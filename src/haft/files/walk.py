"""Resolves a path below a root, one directory descriptor at a time.

The kernel gets only one name at a time and never follows a link for us. Each name is opened relative to the descriptor
of its parent with O_NOFOLLOW; the target of a link is read and walked in the same way; `..` goes back to the previous
descriptor. So a name that another process replaces by a link is refused or walked, but never followed out of the root,
and magic links (`/proc/self/root`) are treated as plain text. `root` uses a walk and opens the file at its end.

Not checked: hard links (they are files like any other) and mounts inside the root.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal, Self

from haft.contracts import CallError, PathEscapes, ToolFailed, near_miss
from haft.files.directories import some_names, sync_directory
from haft.files.failures import failed
from haft.files.printable import shown

Missing = Literal["fail", "make", "suppose"]
"""What to do if a directory is missing: fail, make it, or go on as if it existed."""

_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS: Final = 40
_MAX_DEPTH: Final = 256
"""How many directories deep a path may lead: each directory takes a descriptor during the walk."""
_LONGEST_PATH: Final = 4096
_MAX_SIBLINGS: Final = 1000


class Walk:
    """The end of a resolved path: `name` in `directory`. When the walk ended, `name` was not a link.

    Use a walk with `with`, which closes every descriptor. Open `name` with O_NOFOLLOW, because it may be a link by
    then.
    """

    __slots__ = (
        "_aliases",
        "_descriptors",
        "_links",
        "_masked",
        "_missing",
        "_names",
        "_pending",
        "_top",
        "exists",
        "made",
        "name",
        "path",
    )

    def __init__(
        self,
        aliases: tuple[str, ...],
        path: str,
        missing: Missing = "fail",
        masked: Sequence[str] = (),
        top: str | None = None,
    ) -> None:
        """`aliases` are paths that lead to the root. `top` is the directory where the walk begins, by default the first
        of `aliases`."""
        self._top = aliases[0] if top is None else top
        self.path = path
        self.name = "."
        self.exists = True
        """False if a directory of the path is missing and was only assumed."""
        self.made: list[tuple[int, str, str]] = []
        """The directories that the walk made: descriptor of the parent, name, path from the root."""
        self._aliases = aliases
        self._masked = masked
        """Paths from the root that are refused, with everything below them."""
        self._missing: Missing = missing
        self._descriptors: list[int] = []
        self._names: list[str] = []
        self._pending: list[str] = []
        self._links = 0

    def __enter__(self) -> Self:
        try:
            self._go()
            if any(f"{self.where}/".startswith(f"{place}/") for place in self._masked):
                raise ToolFailed(
                    f"`{shown(self.path)}` is a secret of the machine, which haft hides from tools that root runs",
                    hint="read it without haft",
                )
        except BaseException as error:
            self.unmake()
            self._close()
            if isinstance(error, OSError):
                raise failed(self.path, "reached", error) from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def directory(self) -> int:
        """The descriptor of the directory that contains `name`."""
        return self._descriptors[-1]

    @property
    def where(self) -> str:
        """The path from the root, with every link resolved."""
        names = self._names if self.name == "." else [*self._names, self.name]
        return "/".join(names) or "."

    def status(self) -> os.stat_result | None:
        """The status of the file; None if it does not exist."""
        if not self.exists:
            return None
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def nothing_there(self, name: str | None = None) -> CallError:
        """The error for a missing `name` (by default the last name of the path). Its hint is a similar name in the
        directory."""
        name = self.name if name is None else name
        near = near_miss(name, some_names(self.directory, _MAX_SIBLINGS))
        hint = None if near is None else f"did you mean `{shown('/'.join([*self._names, near]))}`?"
        return ToolFailed(f"`{shown(self.path)}` does not exist", hint=hint)

    def unmake(self) -> None:
        """Remove the directories that the walk made, after a later step has failed. Directories that are not empty
        stay."""
        while self.made:
            parent, name, _ = self.made.pop()
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)

    def _go(self) -> None:
        self._pending = self._start()
        try:
            self._descriptors.append(os.open(self._top, _DIRECTORY))
        except FileNotFoundError:
            raise ToolFailed(f"the workspace `{shown(self._aliases[0])}` does not exist") from None
        while self._pending:
            name = self._pending.pop()
            if name in ("", "."):
                continue
            if name == "..":
                self._leave()
                continue
            target = self._enter(name) if self._pending else self._settle(name)
            if target is not None:
                self._follow(name, target)

    def _start(self) -> list[str]:
        """The names to walk, in reverse order."""
        path = self.path
        if not path:
            raise PathEscapes("", "an empty path names nothing in it")
        if "\0" in path:
            raise PathEscapes(shown(path[:_LONGEST_PATH]), "a path cannot contain a NUL character")
        try:
            length = len(os.fsencode(path))
        except UnicodeEncodeError:
            raise PathEscapes(shown(path[:_LONGEST_PATH]), "it is not valid Unicode") from None
        if length > _LONGEST_PATH:
            raise ToolFailed(f"the path has {length:_} bytes, more than a path may have")
        names = self._split(path)
        if names is None:
            raise PathEscapes(shown(path), "it is an absolute path to another place")
        return names

    def _split(self, path: str) -> list[str] | None:
        """The names of `path`, in reverse order; None for an absolute path that does not begin with the path of the
        root.

        The comparison only decides where the walk begins: all further names are walked below the root in any case.
        """
        parts = path.split("/")
        if not path.startswith("/"):
            return parts[::-1]
        names = [part for part in parts if part not in ("", ".")]
        for alias in self._aliases:
            prefix = [part for part in alias.split("/") if part]
            if names[: len(prefix)] == prefix:
                # Keep a trailing slash: it says that the path is a directory.
                rest = [*names[len(prefix) :], *([""] if parts[-1] in ("", ".") else [])]
                return rest[::-1]
        return None

    def _enter(self, name: str) -> str | None:
        """Enter the directory `name`, and return None. If `name` is a link, do not enter, and return the link's
        target."""
        if len(self._descriptors) > _MAX_DEPTH:
            raise ToolFailed(f"`{shown(self.path)}` is more than {_MAX_DEPTH} directories deep")
        try:
            descriptor = os.open(name, _DIRECTORY, dir_fd=self.directory)
        except FileNotFoundError:
            self._supply(name)
            return None
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            target = self._read_link(name)
            if target is None:
                place = shown("/".join([*self._names, name]))
                raise ToolFailed(f"`{shown(self.path)}` cannot be reached: `{place}` is not a directory") from None
            return target
        self._descriptors.append(descriptor)
        self._names.append(name)
        return None

    def _settle(self, name: str) -> str | None:
        """Take `name` as the end of the walk, and return None. If `name` is a link, only return the link's target."""
        target = self._read_link(name)
        if target is None:
            self.name = name
        return target

    def _read_link(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:  # not a link
                return None
            raise

    def _follow(self, name: str, target: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise ToolFailed(f"`{shown(self.path)}` leads through more than {_MAX_LINKS} links")
        names = self._split(target)
        if names is None:
            link = shown("/".join([*self._names, name]))
            raise PathEscapes(shown(self.path), f"the link `{link}` leads to `{shown(target)}`")
        if target.startswith("/"):
            while len(self._descriptors) > 1:
                self._leave()
        self._pending.extend(names)

    def _leave(self) -> None:
        if len(self._descriptors) == 1:
            raise PathEscapes(shown(self.path), "`..` leads above the workspace")
        left = self._descriptors.pop()
        # The kernel may reuse its number for another file, so `unmake` must not use it.
        self.made = [(-1 if parent == left else parent, name, path) for parent, name, path in self.made]
        os.close(left)
        self._names.pop()

    def _supply(self, name: str) -> None:
        """Handle a missing directory as `missing` says."""
        rest = [part for part in reversed(self._pending) if part not in ("", ".")]
        if self._missing == "fail" or ".." in rest:
            raise self.nothing_there(name)
        if self._missing == "suppose":
            self._names.extend([name, *rest])
            self.name = self._names.pop()
            self.exists = False
            self._pending.clear()
            return
        if not rest or self._pending[0] in ("", "."):
            raise ToolFailed(f"`{shown(self.path)}` names a directory, not a file")
        self._make(name)
        self._pending.append(name)

    def _make(self, name: str) -> None:
        try:
            os.mkdir(name, dir_fd=self.directory)
        except FileExistsError:
            return  # Another process was faster; the walk tries it again.
        self.made.append((self.directory, name, "/".join([*self._names, name])))
        sync_directory(self.directory)

    def _close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())
