"""A snapshot as a value, and the differences between two snapshots. The module `snapshot` takes snapshots."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Collection, Iterable
from typing import Literal

from haft.changes.commit.entry import UNREADABLE, Entry, entry_from
from haft.changes.commit.manifest import PathChange
from haft.changes.snapshots.scan import Stamp
from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of every path of a tree. `Entry` objects are made on demand, because most are never needed."""

    stamps: dict[str, Stamp]
    contents: dict[str, str]
    """By path: the digest of a file, the target of a link, or a device number."""
    racy: frozenset[str]
    """Files that changed so shortly before they were read that a further change may not show in their stamp."""
    unreadable: list[str]
    """Files and directories that this process may neither read nor make readable."""
    attributes: dict[str, str | None] = field(default_factory=dict)
    """By path: its extended attributes, if it has any; None if they could not be read."""
    skip: frozenset[tuple[int, int]] = frozenset()
    removals: str = field(default="", repr=False)

    @property
    def entries(self) -> dict[str, Entry]:
        return {path: self._entry(path, stamp) for path, stamp in self.stamps.items()}

    def entry(self, path: str) -> Entry | None:
        """The state of one path; None if it did not exist."""
        stamp = self.stamps.get(path)
        return None if stamp is None else self._entry(path, stamp)

    def _entry(self, path: str, stamp: Stamp) -> Entry:
        return dataclasses.replace(_entry(stamp, self.contents.get(path)), attributes=self.attributes.get(path, ""))

    def is_closed(self, path: str) -> bool:
        """Whether the path was a directory that could not be read."""
        return self.contents.get(path) == UNREADABLE and stat.S_ISDIR(self.stamps[path][0])


Linked = dict[Literal["before", "after"], list[list[str]]]
"""Before and after a call: groups of paths that are hard links of one file, if at least one path of the group
changed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a tree with an earlier snapshot of it."""

    changes: list[PathChange]
    """In byte order of the paths, so that a directory comes before its content."""
    unreadable: list[str]
    """Paths that could not be read for this comparison: haft does not know whether they changed."""
    unkept: list[str]
    """Changed files that did not fit into the budget: only the digest of their new content is known."""
    after: Snapshot
    """The snapshot of the tree now."""
    linked: Linked = field(default_factory=dict)


def changes_between(before: Snapshot, after: Snapshot) -> list[PathChange]:
    """The changes from one snapshot to another."""
    known, had, has = before.stamps.get, before.attributes, after.attributes
    paths = {path for path, stamp in after.stamps.items() if known(path) != stamp}
    paths |= {path for path in had.keys() | has.keys() if had.get(path, "") != has.get(path, "")}
    return changed_paths(before, after, paths | (before.stamps.keys() - after.stamps.keys()) | before.racy)[0]


def changed_paths(before: Snapshot, after: Snapshot, paths: Collection[str]) -> tuple[list[PathChange], Linked]:
    """The changes among `paths`, in byte order, and the groups of hard links. A hard link counts as changed, too, if
    its path now belongs to another file with the same content."""
    found = []
    were, are = _hard_link_groups(before, paths), _hard_link_groups(after, paths)
    joined = {name for groups in (were, are) for group in groups for name in group}
    # If a directory could not be read before or after the call, its content must not count as created or deleted.
    closed = tuple(f"{path}/" for side in (before, after) for path in side.unreadable if side.is_closed(path))
    for path in sorted(paths, key=os.fsencode):
        was, now = before.entry(path), after.entry(path)
        if path.startswith(closed) or (was is None and now is None):
            continue
        is_other = was is not None and now is not None and was.inode != now.inode and path in joined
        if now is None or not now.is_like(was) or is_other:
            found.append(PathChange(path, was, now))
    changed = {each.path for each in found}
    linked: Linked = {
        "before": [group for group in were if not changed.isdisjoint(group)],
        "after": [group for group in are if not changed.isdisjoint(group)],
    }
    return found, linked if linked["before"] or linked["after"] else {}


def _hard_link_groups(snapshot: Snapshot, paths: Iterable[str]) -> list[list[str]]:
    """The groups of hard links that contain one of `paths`."""
    stamps = snapshot.stamps
    wanted = {stamp[1:3] for path in paths if (stamp := stamps.get(path)) is not None and stamp[3] > 1}
    groups: dict[Stamp, list[str]] = {}
    for path, stamp in stamps.items() if wanted else ():
        if stamp[3] > 1 and stamp[1:3] in wanted and stat.S_ISREG(stamp[0]):
            groups.setdefault(stamp[1:3], []).append(path)
    return [sorted(group, key=os.fsencode) for group in groups.values() if len(group) > 1]


def _entry(stamp: Stamp, content: str | None) -> Entry:
    times = {"st_mtime_ns": stamp[7], "st_rdev": 0}
    if content is not None and stat.S_IFMT(stamp[0]) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        times["st_rdev"] = int(content)
    entry = entry_from(os.stat_result((*stamp[:7], 0, 0, 0), times), content)
    return dataclasses.replace(entry, content=UNREADABLE) if content == UNREADABLE and entry.is_directory else entry
