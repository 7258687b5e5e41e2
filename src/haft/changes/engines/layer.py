"""Reading an overlay layer: turns the content of the layer into the change set of the call.

The layer holds the new files, not the old ones. The old files are read from the workspace below, which someone else may
have changed since. So haft notes when the call began, by the clock of the filesystem. A file below that changed at or
after this time is not the file that the call saw: a conflict.
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
from haft.values import dataclass, field

LARGE: Final = 1_000_000
DEEPEST: Final = 400
"""The deepest nesting of directories: no program can name a path beyond it."""


def mark_prefix() -> str:
    """The prefix of the attributes that our overlays set as marks. A call may set other attributes, which mean
    nothing."""
    return "trusted.overlay." if os.geteuid() == 0 else "user.overlay."


class TooDeep(Exception):
    """The call made directories nested deeper than `DEEPEST`."""


@dataclass(slots=True)
class LayerContents:
    """The changes found in a layer."""

    entries: list[PathChange] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    """Paths that differ from what the call saw."""
    split_links: list[str] = field(default_factory=list)
    """Files that had several names (hard links) and now have a copy of their own."""


def take_stamp(directory: str) -> int:
    """The current time by the clock of the filesystem of a directory: later than every earlier change, and not later
    than any later change. In some kernels this clock ticks slowly; this function waits for a tick."""
    first = os.stat(directory).st_ctime_ns
    while True:
        os.chmod(directory, 0o700)
        now = os.stat(directory).st_ctime_ns
        if now > first:
            return now
        time.sleep(0.0005)


def read_large(upper: Tree, most: int, stopped: Callable[[], bool]) -> dict[int, str]:
    """The digests of a layer's large files, by inode, computed before the lock is taken. Files beyond `most` bytes in
    total, holes included, are not read: a call can make files in a moment that take days to read."""
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
    ) -> None:
        """Without `digests`, files are listed but not read. `known` maps inodes of new files to digests computed
        before."""
        self._digests = digests
        self._known = known or {}
        self._stopped = stopped
        self._workspace = workspace
        self._upper = upper
        self._stamp = stamp
        self._found = LayerContents()
        self._prefix = mark_prefix()
        self._moved_in: list[tuple[str, bytes]] = []
        self._origins: dict[str, str] = {}
        """Renamed directories of the layer: where each came from."""
        self._changed: dict[int, int] = {}
        """By inode: the ctime of files below. Making a file readable changes the ctime under all of its names."""

    def read(self) -> LayerContents:
        """All changes. Files that the layer takes from below are copied into it, and the overlay's marks are removed,
        so that the layer becomes a plain tree of new files."""
        waiting: list[tuple[str, str | None, bool]] = [("", "", False)]
        while waiting:
            path, below, covered = waiting.pop()
            if path.count("/") > DEEPEST:
                raise TooDeep
            waiting += self._directory(path, below, covered)
        found = self._found
        found.conflicts += self._vanished()
        found.entries.sort(key=lambda each: os.fsencode(each.path))
        found.conflicts = sorted(set(found.conflicts), key=os.fsencode)
        return found

    def _vanished(self) -> list[str]:
        """Files that the call changed in place and that someone else removed meanwhile. A file that the call renamed
        looks the same, but then the call itself removed its old name."""
        gone = {each.before.inode for each in self._found.entries if each.before is not None}
        found = []
        for path, origin in self._moved_in:
            inode = int.from_bytes(origin[21:25], "little") if len(origin) >= 25 and origin[4] == 1 else None
            renamed = inode in gone if inode is not None else bool(gone)
            if not renamed and self._touched(os.path.dirname(path)):
                found.append(path)
        return found

    def _directory(self, path: str, below: str | None, covered: bool) -> list[tuple[str, str | None, bool]]:
        """Read one directory of the layer. `below` is the directory under it, if any; `covered` says that it is hidden
        completely."""
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
        if before is not None and before.kind == "file" and before.links > 1:
            self._found.split_links.append(path)
        self._found.entries.append(PathChange(path, before, after))

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
        if self._changed.get(under.st_ino, under.st_ctime_ns) >= self._stamp:
            self._found.conflicts.append(path)

    def _touched(self, directory: str) -> bool:
        found = self._workspace.status(directory) if directory else os.stat(self._workspace.path)
        return found is None or found.st_ctime_ns >= self._stamp

    # The marks that the overlay sets.

    def _take_marks(self, path: str, *, off: bool = True) -> dict[str, bytes]:
        """The overlay's marks of one path. With `off` they are removed: they mean nothing in the workspace."""
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
        """The original path of a directory that the call renamed. The mark has an absolute path or a name beside the
        directory."""
        target = os.fsdecode(words)
        if target.startswith("/"):
            return target.strip("/")  # The tree refuses a `..` in it.
        above = self._lower(os.path.dirname(path))
        return f"{above}/{target}" if above else target

    def _lower(self, path: str) -> str:
        """The directory below that a layer directory covered while the call ran."""
        if not path or path in self._origins:
            return self._origins.get(path, "")
        above, name = os.path.split(path)
        lower = self._lower(above)
        return f"{lower}/{name}" if lower else name

    def _copy_from_below(self, path: str, below: str) -> None:
        """Copy the content below into a renamed directory, because the original will be gone."""
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
