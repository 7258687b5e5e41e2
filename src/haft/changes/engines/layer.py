"""Reading an overlay layer: turns the content of the layer into the change set of the call.

The layer holds the new files, not the old ones. The old files are read from the workspace below, which someone else may
have changed since. So haft notes when the call began, by the clock of the filesystem. If a file of the workspace has
changed at or after this time, it may not be the file that the call saw: this is a conflict.

In this module, "below" and "under" mean the workspace that the layer covers. Marks are the extended attributes by which
the kernel's overlay remembers that a directory was renamed (`redirect`), that it hides the directory below (`opaque`),
or which file was copied up (`origin`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from typing import Final

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of
from haft.changes.commit.entry import UNREADABLE, Entry, entry_from
from haft.changes.commit.exact_copy import copy
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree, set_mode
from haft.changes.published.conflicts import CommitHistory
from haft.values import dataclass, field

LARGE: Final = 1_000_000
DEEPEST: Final = 400
"""The deepest nesting of directories that haft reads in a layer."""


def mark_prefix() -> str:
    """The prefix of the extended attributes that haft's overlays use as marks. Attributes with another prefix are not
    marks, even if a call gives them a similar name."""
    return "trusted.overlay." if os.geteuid() == 0 else "user.overlay."


class TooDeep(Exception):
    """The call made directories nested deeper than `DEEPEST`."""


@dataclass(slots=True)
class LayerContents:
    """The changes found in a layer."""

    entries: list[PathChange] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    """Paths that someone else changed in the workspace after the call began."""
    split_links: list[str] = field(default_factory=list)
    """Paths of files that had several hard links. The layer holds a copy of its own for each such path."""


def take_stamp(directory: str) -> int:
    """The current time by the clock of the filesystem that holds a directory. It is later than the times of all changes
    that were made there before, and not later than the time of any change that is made there afterwards. In some
    kernels this clock ticks slowly: this function waits for the next tick."""
    first = os.stat(directory).st_ctime_ns
    while True:
        os.chmod(directory, 0o700)
        now = os.stat(directory).st_ctime_ns
        if now > first:
            return now
        time.sleep(0.0005)


def read_large(upper: Tree, most: int, stopped: Callable[[], bool]) -> dict[int, str]:
    """The digests of a layer's large files, by inode. Call this before taking the lock, because it may take long. Once
    the files exceed `most` bytes in total, all further files get the digest `UNREADABLE`: a call can make a huge file
    with holes in a moment, and reading it would take days."""
    known: dict[int, str] = {}
    left = most or None
    for path, status in upper.walk(""):
        if not stat.S_ISREG(status.st_mode) or status.st_size < LARGE:
            continue
        if left is not None:
            left -= status.st_size
        if left is not None and left < 0:
            known[status.st_ino] = UNREADABLE
        elif (found := read_entry(upper, path, status, forced=True, stopped=stopped)) is not None and found.content:
            known[status.st_ino] = found.content
    return known


class LayerReader:
    """Reads one layer once."""

    def __init__(
        self,
        workspace: Tree,
        upper: Tree,
        stamp: int,
        *,
        digests: bool = True,
        known: Mapping[int, str] | None = None,
        stopped: Callable[[], bool] | None = None,
        history: CommitHistory | None = None,
    ) -> None:
        """`workspace` is the committed state. `history` explains the changes of it that haft made. `stamp` is the
        result of `take_stamp` when the call began. Without `digests`, files are listed but not read. `known` is the
        result of `read_large`."""
        self._digests = digests
        self._known = known or {}
        self._history = None if history is None or history.is_empty else history
        self._stopped = stopped
        self._workspace = workspace
        self._upper = upper
        self._stamp = stamp
        self._found = LayerContents()
        self._prefix = mark_prefix()
        self._moved_in: list[tuple[str, bytes]] = []
        self._origins: dict[str, str] = {}
        """By directory of the layer that the call renamed: its original path in the workspace."""
        self._changed: dict[int, int] = {}
        """By inode: the ctime that a workspace file had when it was first seen. Later it may be newer, because haft may
        have to make the file readable, which changes the ctime."""

    def read(self) -> LayerContents:
        """All changes in the layer. On the way, the layer becomes a plain tree of new files: the content of a renamed
        directory is copied from the workspace into the layer, and the overlay's marks are removed."""
        waiting: list[tuple[str, str | None, bool]] = [("", "", False)]
        while waiting:
            path, below, covered = waiting.pop()
            if path.count("/") > DEEPEST:
                raise TooDeep
            waiting += self._directory(path, below, covered)
        found = self._found
        found.conflicts += self._vanished()
        if self._history is not None:
            found.conflicts += self._history.conflicts(found.entries)
        found.entries.sort(key=lambda each: os.fsencode(each.path))
        found.conflicts = sorted(set(found.conflicts), key=os.fsencode)
        return found

    def _vanished(self) -> list[str]:
        """Files that the call changed in place, and that someone else removed from the workspace during the call. A
        file that the call renamed looks the same in the layer, but is not meant here: in that case, the layer also says
        that the old path is deleted."""
        gone = {each.before.inode for each in self._found.entries if each.before is not None}
        found = []
        for path, origin in self._moved_in:
            inode = int.from_bytes(origin[21:25], "little") if len(origin) >= 25 and origin[4] == 1 else None
            renamed = inode in gone if inode is not None else bool(gone)
            is_own = self._history is not None and self._history.is_own(path, None)
            if not renamed and not is_own and self._touched(os.path.dirname(path)):
                found.append(path)
        return found

    def _directory(self, path: str, below: str | None, covered: bool) -> list[tuple[str, str | None, bool]]:
        """Read one directory of the layer, and return the arguments for its subdirectories. `below` is the workspace
        directory under `path`, if any; `covered` says that the layer hides the content of that directory completely."""
        deeper: list[tuple[str, str | None, bool]] = []
        seen: set[str] = set()
        for name, status in self._upper.children(path):
            inner = f"{path}/{name}" if path else name
            under = None if below is None else self._workspace.status(inner)
            seen.add(name)
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                self._remove(inner, under)
                place, name = self._upper.at(inner)
                os.unlink(name, dir_fd=place)
            elif stat.S_ISDIR(status.st_mode):
                deeper.append(self._inner_directory(inner, status, under, covered))
            else:
                self._file(inner, status, under)
        if covered and below is not None:
            for name, under in self._workspace.children(path):
                if name not in seen:
                    self._remove(f"{path}/{name}" if path else name, under)
        return deeper

    def _inner_directory(
        self, path: str, status: os.stat_result, under: os.stat_result | None, covered: bool
    ) -> tuple[str, str | None, bool]:
        marks = self._take_marks(path, off=under is None or not stat.S_ISDIR(under.st_mode))
        if "redirect" in marks:
            self._copy_from_below(path, self._redirected(path, marks["redirect"]))
            covered = True
        covered = covered or "opaque" in marks
        after = self._read_entry(self._upper, path, status)
        if under is None:
            self._found.entries.append(PathChange(path, None, after))
            return path, None, True
        if not stat.S_ISDIR(under.st_mode):
            before = self._read_entry(self._workspace, path, under)
            self._check(path, under)
            self._found.entries.append(PathChange(path, before, after))
            return path, None, True
        before = self._read_entry(self._workspace, path, under)
        if before is not None and not before.is_like(after):
            self._check(path, under)  # If others changed the directory too, haft cannot tell who set its mode.
            self._found.entries.append(PathChange(path, before, after))
        return path, path, covered

    def _file(self, path: str, status: os.stat_result, under: os.stat_result | None) -> None:
        marks = self._take_marks(path)
        after = self._read_entry(self._upper, path, status)
        if under is None:
            if "origin" in marks:
                self._moved_in.append((path, marks["origin"]))
            self._found.entries.append(PathChange(path, None, after))
            return
        before = self._read_entry(self._workspace, path, under)
        if before is not None and before.is_like(after):
            return
        if stat.S_ISDIR(under.st_mode):
            self._remove_below(path)
        self._check(path, under)
        if before is not None and before.kind == "file" and before.links - self._private_links(path, before) > 1:
            self._found.split_links.append(path)
        self._found.entries.append(PathChange(path, before, after))

    def _private_links(self, path: str, before: Entry) -> int:
        return 0 if self._history is None else self._history.private_links(path, before.inode)

    def _remove(self, path: str, under: os.stat_result | None) -> None:
        if under is None:
            return
        self._check(path, under)
        self._found.entries.append(PathChange(path, self._read_entry(self._workspace, path, under), None))
        if stat.S_ISDIR(under.st_mode):
            self._remove_below(path)

    def _remove_below(self, path: str) -> None:
        for inner, status in self._workspace.walk(path):
            self._check(inner, status)
            self._found.entries.append(PathChange(inner, self._read_entry(self._workspace, inner, status), None))

    def _read_entry(self, tree: Tree, path: str, status: os.stat_result) -> Entry | None:
        if tree is self._workspace:
            self._changed.setdefault(status.st_ino, status.st_ctime_ns)
        if not self._digests:
            return entry_from(status)
        if tree is self._upper and status.st_ino in self._known:
            with contextlib.suppress(UnreadableAttributes):
                return entry_from(status, self._known[status.st_ino], attributes_of(self._upper.proc_path(path)))
            return entry_from(status, self._known[status.st_ino])
        return read_entry(tree, path, status, forced=True, stopped=self._stopped)

    def _check(self, path: str, under: os.stat_result) -> None:
        if self._changed.get(under.st_ino, under.st_ctime_ns) < self._stamp:
            return
        if self._history is None or not self._history.is_own(path, under):
            self._found.conflicts.append(path)

    def _touched(self, directory: str) -> bool:
        found = self._workspace.status(directory) if directory else os.stat(self._workspace.path)
        return found is None or found.st_ctime_ns >= self._stamp

    # The marks that the overlay sets.

    def _take_marks(self, path: str, *, off: bool = True) -> dict[str, bytes]:
        """The overlay's marks of one path. With `off`, the marks are also removed, because they mean nothing in the
        workspace."""
        where = self._upper.proc_path(path)
        try:
            noted = [mark for mark in os.listxattr(where, follow_symlinks=False) if mark.startswith(self._prefix)]
        except OSError as error:
            if error.errno in (errno.ENOTSUP, errno.EPERM):
                return {}
            raise
        marks: dict[str, bytes] = {}
        for mark in noted:
            with contextlib.suppress(OSError):
                marks[mark.split(".", 2)[2]] = os.getxattr(where, mark, follow_symlinks=False)
            if off:
                self._remove_mark(path, where, mark)
        return marks

    def _remove_mark(self, path: str, where: bytes, mark: str) -> None:
        try:
            os.removexattr(where, mark, follow_symlinks=False)
        except PermissionError:
            status = self._upper.status(path)
            assert status is not None
            set_mode(self._upper, path, stat.S_IMODE(status.st_mode) | 0o200)
            try:
                os.removexattr(where, mark, follow_symlinks=False)
            finally:
                set_mode(self._upper, path, stat.S_IMODE(status.st_mode))

    def _redirected(self, path: str, words: bytes) -> str:
        """The original path of a directory that the call renamed to `path`. `words` is its `redirect` mark: an absolute
        path, or another name in the same parent directory."""
        target = os.fsdecode(words)
        if target.startswith("/"):
            return target.strip("/")  # `Tree` refuses a path with `..`.
        above = self._lower(os.path.dirname(path))
        return f"{above}/{target}" if above else target

    def _lower(self, path: str) -> str:
        """The path of the workspace directory that lay under a directory of the layer while the call ran."""
        if not path or path in self._origins:
            return self._origins.get(path, "")
        above, name = os.path.split(path)
        lower = self._lower(above)
        return f"{lower}/{name}" if lower else name

    def _copy_from_below(self, path: str, below: str) -> None:
        """Copy the content of the workspace directory `below` into the layer directory `path`. The call renamed `below`
        to `path`, and the commit will remove `below`."""
        waiting = [(path, below)]
        while waiting:
            here, under = waiting.pop()
            self._origins[here] = under
            present = dict(self._upper.children(here))
            try:
                there = self._workspace.children(under)
            except OSError:
                self._found.conflicts.append(under)
                continue
            for name, status in there:
                inner, source = f"{here}/{name}", f"{under}/{name}"
                mine = present.get(name)
                if mine is None:
                    copy(self._workspace, source, self._upper, inner)
                elif stat.S_ISDIR(mine.st_mode) and stat.S_ISDIR(status.st_mode):
                    marks = self._take_marks(inner)
                    if "redirect" in marks:
                        waiting.append((inner, self._redirected(inner, marks["redirect"])))
                    elif "opaque" not in marks:
                        waiting.append((inner, source))
