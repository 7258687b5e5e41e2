"""Which originals of a run can be replaced by blobs, from which undo makes the files anew.

This is allowed only if the file that undo makes would equal the original in everything but the inode. That requires
that the original has no other hard link and no extended attributes, and that this process may set its owner. If an
original directory could not be made anew exactly, all files in it stay.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from dataclasses import dataclass
from typing import Final

from haft.changes.commit.entry import UNREADABLE, Entry, kind_of
from haft.changes.commit.journal import OUT, steps_of
from haft.changes.commit.manifest import Manifest
from haft.changes.commit.tree import Tree

_MARKS: Final = ("trusted.overlay.", "user.overlay.")
"""Prefixes of the extended attributes that an overlay uses as marks."""


@dataclass(frozen=True, slots=True)
class Original:
    """An original file that can be removed once its content is in the blob store."""

    place: str
    """The path of the original, relative to the area."""
    entry: Entry
    status: os.stat_result


class PackableFinder:
    """Finds originals that undo could make anew from blobs."""

    def __init__(self) -> None:
        self._user = os.geteuid()
        self._groups = {os.getegid(), *os.getgroups()}

    def originals(self, ours: Tree, run: str, manifest: Manifest) -> list[Original]:
        """The originals of a run that can be replaced by blobs. `ours` is the area."""
        before = {each.path: each.before for each in manifest.entries}
        found: list[Original] = []
        for place, path in places_of(run, manifest):
            found += self._beneath(ours, place, path, before)
        return found

    def _beneath(self, ours: Tree, place: str, path: str, before: dict[str, Entry | None]) -> list[Original]:
        """The files of one original that can be replaced by blobs. An original is a single file, or a directory with
        its content."""
        status = ours.status(place)
        if status is None:
            return []
        every = [(place, status)]
        found = []
        try:
            if stat.S_ISDIR(status.st_mode):
                every += ours.walk(place)
            for inner, here in every:
                entry = before.get(path + inner[len(place) :])
                if stat.S_ISDIR(here.st_mode):
                    if not self._can_be_made_again(ours, inner, here):
                        return []
                elif entry is not None and stat.S_ISREG(here.st_mode) and self._may_go(ours, inner, here, entry):
                    found.append(Original(inner, entry, here))
        except OSError:
            return []  # If a part of the original cannot be read, all of it stays.
        return found

    def _may_go(self, ours: Tree, place: str, here: os.stat_result, entry: Entry) -> bool:
        return (
            here.st_nlink == 1
            and entry.links == 1
            and entry.content not in (None, UNREADABLE)
            and _is_as_it_was(here, entry)
            and (self._user == 0 or here.st_mode & 0o400 != 0)
            and self._can_be_made_again(ours, place, here)
        )

    def _can_be_made_again(self, ours: Tree, place: str, here: os.stat_result) -> bool:
        if self._user != 0:
            if here.st_uid != self._user or here.st_gid not in self._groups:
                return False
            if stat.S_ISDIR(here.st_mode) and here.st_mode & 0o700 != 0o700:
                return False
        return not _has_attributes(ours, place)

    def empty_tree(
        self, ours: Tree, place: str, path: str, before: dict[str, Entry | None]
    ) -> list[tuple[str, os.stat_result]]:
        """The places of everything in the original directory at `place`, innermost first, the directory itself last;
        each with its status. An empty list if it contains anything but directories and links that can be made anew."""
        status = ours.status(place)
        if status is None or not stat.S_ISDIR(status.st_mode):
            return []
        every = [(place, status), *ours.walk(place)]
        for inner, here in every:
            entry = before.get(path + inner[len(place) :])
            if entry is None or kind_of(here.st_mode) != entry.kind or entry.kind not in ("directory", "link"):
                return []
            if not _is_as_it_was(here, entry) or not self._can_be_made_again(ours, inner, here):
                return []
            if entry.kind == "link" and ours.link_target(inner) != entry.content:
                return []
        return every[::-1]


def places_of(run: str, manifest: Manifest) -> list[tuple[str, str]]:
    """For each original of a run: its path relative to the area, and its path in the workspace."""
    return [(f"kept/{run}/{OUT}/{step.number}", step.path) for step in steps_of(manifest) if step.out is not None]


def _is_as_it_was(here: os.stat_result, entry: Entry) -> bool:
    """Whether owner, mode, size and mtime of an original are the same as in `entry`."""
    if (here.st_uid, here.st_gid) != (entry.uid, entry.gid):
        return False
    if entry.kind == "link":
        return True
    if entry.kind == "file" and (here.st_size, here.st_mtime_ns) != (entry.size, entry.mtime_ns):
        return False
    return stat.S_IMODE(here.st_mode) == entry.mode


def _has_attributes(ours: Tree, place: str) -> bool:
    """Whether the file has extended attributes other than an overlay's marks. True if that is unknown."""
    if sys.platform != "linux":
        return True
    where, name = ours.at(place)
    try:
        found = os.listxattr(f"/proc/self/fd/{where}/{name}", follow_symlinks=False)
    except OSError as error:
        return error.errno != errno.ENOTSUP
    return any(not each.startswith(_MARKS) for each in found)
