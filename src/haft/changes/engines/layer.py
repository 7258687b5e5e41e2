"""Reading a layer: from what an overlay took in to the change set of the call.

The layer holds what changed and nothing of what was: that is looked up below, where someone else may have been at work
since. So the moment at which the call began is kept as a stamp, in the clock of the filesystem itself: what has changed
below at or after it was not what the call saw, and is a conflict.
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
"""Directories within directories: beyond this no program could name what lies there."""


def mark_prefix() -> str:
    """How the marks of our own overlays begin. A call can set others as it likes, and they mean nothing."""
    return "trusted.overlay." if os.geteuid() == 0 else "user.overlay."


class TooDeep(Exception):
    """The call made directories within directories beyond all reason."""


@dataclass(slots=True)
class LayerContents:
    """What a layer tells."""

    entries: list[PathChange] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    """Paths that are not any more what the call saw."""
    split_links: list[str] = field(default_factory=list)
    """Files that had other names too, and now have a content of their own."""


def take_stamp(directory: str) -> int:
    """The time by the clock of the filesystem on which a directory lies: later than every change before, and not later
    than any change after. That clock ticks slowly in some kernels; it is waited for."""
    first = os.stat(directory).st_ctime_ns
    while True:
        os.chmod(directory, 0o700)
        now = os.stat(directory).st_ctime_ns
        if now > first:
            return now
        time.sleep(0.0005)


def read_large(upper: Tree, most: int, stopped: Callable[[], bool]) -> dict[int, str]:
    """The digests of the large files of a layer, by inode, read while nobody waits. Of those that hold more than `most`
    bytes together, holes included, the rest is not read: what a call can make in a moment could be read for days."""
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
    """One reading of one layer."""

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
        """Without `digests`, files are told of and not read. `known` are those of new files that were read before, by
        inode."""
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
        """Directories of the layer that were renamed, and from where."""
        self._changed: dict[int, int] = {}
        """When files below changed last, by inode. Reading one that is closed moves that, under all of its names."""

    def read(self) -> LayerContents:
        """Everything that differs. What the layer borrowed from below is copied into it, and its marks are taken off,
        so that from here on it is a plain tree of what is new."""
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
        """Files that were changed in place and are not there any more: someone removed them meanwhile. One that the
        call renamed looks the same, but then the name it had is gone by the call itself."""
        gone = {each.before.inode for each in self._found.entries if each.before is not None}
        found = []
        for path, origin in self._moved_in:
            inode = int.from_bytes(origin[21:25], "little") if len(origin) >= 25 and origin[4] == 1 else None
            renamed = inode in gone if inode is not None else bool(gone)
            if not renamed and self._touched(os.path.dirname(path)):
                found.append(path)
        return found

    def _directory(self, path: str, below: str | None, covered: bool) -> list[tuple[str, str | None, bool]]:
        """One directory of the layer. `below` is the one that it lies over, if any; `covered` says that nothing of that
        shines through."""
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
            self._check(path, under)  # Whose mode it is cannot be told where others were at work in it.
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

    # The marks that the overlay leaves.

    def _take_marks(self, path: str, *, off: bool = True) -> dict[str, bytes]:
        """What it noted of one thing; taken `off` what will come into the workspace, where it means nothing."""
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
        """Where in the workspace a directory was, that the call renamed: from the top, or beside where it lies now."""
        target = os.fsdecode(words)
        if target.startswith("/"):
            return target.strip("/")  # A `..` in it would be refused by the tree.
        above = self._lower(os.path.dirname(path))
        return f"{above}/{target}" if above else target

    def _lower(self, path: str) -> str:
        """What a directory of the layer lay over while the call ran."""
        if not path or path in self._origins:
            return self._origins.get(path, "")
        above, name = os.path.split(path)
        lower = self._lower(above)
        return f"{lower}/{name}" if lower else name

    def _copy_from_below(self, path: str, below: str) -> None:
        """Copy into a renamed directory what the layer left below: there it will be gone."""
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
