"""Finds out what was committed since a view was taken, and tells haft's changes of the workspace from those of others.

A commit by haft changes the ctimes of files, and so does a flush. So conflicts between calls of haft are found by the
paths in the records of the register. A ctime only tells that somebody else changed a file, and only if no record
explains the file as it is now.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from haft.changes.commit.entry import Entry, kind_of
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.steps import as_latin, from_latin
from haft.changes.published.register import PublishedLayer, Register
from haft.contracts import Paths, meeting_path

State = tuple[str, int, int, int, int, int, int]
"""The kind, inode, size, mtime, mode, uid and gid of a file."""


def record_of(host: str, entries: Iterable[PathChange]) -> dict[str, Any]:
    """What the register keeps of a change set: the host that committed it, and each path with its state after it."""
    return {"host": host, "paths": [[as_latin(each.path), _state(each.after)] for each in entries]}


def _state(entry: Entry | None) -> list[Any] | None:
    if entry is None:
        return None
    return [entry.kind, entry.inode, entry.size, entry.mtime_ns, entry.mode & 0o7777, entry.uid, entry.gid]


class CommitHistory:
    """What the records of the register say, as they are when this object is made."""

    def __init__(self, register: Register, since: int | None, own: Sequence[str] = ()) -> None:
        """`since` is the number of the view; None if conflicts with other calls do not matter. `own` are runs whose
        changes are no conflict: the calls that the call made."""
        self._register = register
        self._layers = register.layers()
        self._later = (
            [] if since is None else [each for each in self._layers if each.number > since and each.run not in own]
        )

    @property
    def is_empty(self) -> bool:
        return not self._layers

    @cached_property
    def _known(self) -> dict[str, list[State | None]]:
        """By path: its states after each record that has the path. The workspace's own file may be in any of them,
        because some layers are not flushed."""
        known: dict[str, list[State | None]] = {}
        for layer in self._layers:
            for path, state in self._paths(layer):
                known.setdefault(path, []).append(state)
        return known

    def _paths(self, layer: PublishedLayer) -> list[tuple[str, State | None]]:
        found = self._register.record(layer).get("paths", ())
        return [(from_latin(path), None if state is None else tuple(state)) for path, state in found]

    @cached_property
    def _since(self) -> dict[str, tuple[State | None, str]]:
        """By path that was committed after the view was taken: its state, and the run."""
        return {path: (state, layer.run) for layer in self._later for path, state in self._paths(layer)}

    @cached_property
    def _since_sorted(self) -> list[str]:
        return sorted(self._since)

    def later_run(self, each: PathChange) -> str | None:
        """The run that committed, after the view was taken, something that this change would overwrite; None if there
        is none."""
        if not self._later:
            return None
        if each.path in self._since:
            return self._since[each.path][1]
        above = os.path.dirname(each.path)
        while above:
            found = self._since.get(above)
            if found is not None and (found[0] is None or found[0][0] != "directory"):
                return found[1]
            above = os.path.dirname(above)
        if each.after is None or not each.after.is_directory:
            first = bisect_left(self._since_sorted, f"{each.path}/")
            if first < len(self._since_sorted) and self._since_sorted[first].startswith(f"{each.path}/"):
                return self._since[self._since_sorted[first]][1]
        return None

    def conflicts(self, entries: Iterable[PathChange]) -> list[str]:
        """The paths of these changes that a later commit changed too."""
        return [each.path for each in entries if self.later_run(each) is not None] if self._later else []

    def later_read(self, reads: Paths) -> str | None:
        """A path that was committed after the view was taken and that the call may have read; None if there is none."""
        for path in self._since:
            if meeting_path(reads, (path,)) is not None:
                return path
        return None

    def is_own(self, path: str, status: os.stat_result | None) -> bool:
        """Whether haft left the path as it is now. The content of a directory does not count."""
        if not self._layers:
            return False
        if path not in self._known:
            # haft has changed a file in the directory: so the directory's ctime says nothing.
            is_directory = status is not None and stat.S_ISDIR(status.st_mode)
            return is_directory and any(os.path.dirname(one) == path for one in self._known)
        return any(_is_state(status, state) for state in self._known[path])

    def private_links(self, path: str, inode: int) -> int:
        """How many of a file's names (hard links) are in layers of the register, and so are no names of the user."""
        count = 0
        for layer in self._layers:
            if layer.removed is None:
                try:
                    found = os.lstat(os.path.join(self._register.files(layer), path))
                except OSError:
                    continue
                count += found.st_ino == inode
        return count


def links_of(register: Register, workspace: str) -> list[str]:
    """The paths at which the open layers have made or removed a link."""
    found: dict[str, None] = {}
    for layer in register.open_layers():
        for name, state in register.record(layer).get("paths", ()):
            path = from_latin(name)
            if (state is not None and state[0] == "link") or os.path.islink(os.path.join(workspace, path)):
                found[path] = None
    return [*found]


def _is_state(status: os.stat_result | None, state: State | None) -> bool:
    if state is None or status is None:
        return state is None and status is None
    kind, inode, size, mtime_ns, mode, uid, gid = state
    if kind != kind_of(status.st_mode) or (uid, gid) != (status.st_uid, status.st_gid):
        return False
    if kind == "directory":
        return stat.S_IMODE(status.st_mode) == mode
    if kind == "file" and (size, mtime_ns, mode) != (
        status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode)
    ):  # fmt: skip
        return False
    return inode == status.st_ino
