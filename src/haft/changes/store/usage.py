"""The disk usage of the store, by part.

The numbers are bytes of allocated disk blocks. A file with several hard links counts once. The content of unreadable
directories does not count.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from haft.changes.commit.area import Area
from haft.changes.commit.journal import OUT
from haft.changes.ledger import Row
from haft.contracts import path_to_json

_BLOCK = 512


def disk_usage(path: str) -> int:
    """The bytes on disk of a file, or of a directory with its content."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for status in _statuses(path):
        if status.st_nlink > 1:
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
        total += status.st_blocks * _BLOCK
    return total


def _statuses(path: str) -> Iterator[os.stat_result]:
    try:
        yield os.lstat(path)
    except OSError:
        return
    waiting = [path]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)


def names_in(path: str) -> list[str]:
    """The sorted names in a directory; empty if the directory cannot be read."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def format_bytes(size: float) -> str:
    """A number of bytes for people, such as `1.5 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            shown = f"{size:.0f}" if unit == "bytes" or size >= 100 else f"{size:.1f}".removesuffix(".0")
            return f"{shown} {unit}"
        size /= 1000
    raise AssertionError


@dataclass(frozen=True, slots=True)
class HeldChangeSet:
    """A held change set: it waits for a person, and is never pruned."""

    run: str
    workspace: str
    since: float
    reason: str | None

    def to_json(self) -> dict[str, Any]:
        workspace = path_to_json(self.workspace)["path"]
        return {"run": self.run, "workspace": workspace, "since": self.since, "reason": self.reason}


@dataclass(slots=True)
class WorkspaceUse:
    """The bytes kept for one workspace."""

    workspace: str
    area: str
    originals: int = 0
    """Replaced files, kept as they were, not as blobs."""
    lists: int = 0
    """Manifests: the lists of changed paths."""
    held: int = 0
    under_way: int = 0
    """Layers of calls that still run, or whose host was killed."""
    saved: int = 0
    """Originals that could not be put back when a commit was reverted."""
    undoable: int = 0
    oldest: float | None = None
    """When the oldest undoable run was committed."""

    @property
    def total(self) -> int:
        return self.originals + self.lists + self.held + self.under_way + self.saved

    def to_json(self) -> dict[str, Any]:
        return {
            "workspace": path_to_json(self.workspace)["path"],
            "area": path_to_json(self.area)["path"],
            "originals": self.originals,
            "lists": self.lists,
            "held": self.held,
            "underWay": self.under_way,
            "saved": self.saved,
            "undoable": self.undoable,
            "oldest": self.oldest,
        }


@dataclass(slots=True)
class Usage:
    """The disk usage of the whole store."""

    budget: int
    days: float
    workspaces: list[WorkspaceUse] = field(default_factory=list)
    held: list[HeldChangeSet] = field(default_factory=list)
    blobs: int = 0
    """The number of blobs."""
    contents: int = 0
    """The bytes of the blobs."""
    outputs: int = 0
    scratch: int = 0
    """The bytes in the threads' `/tmp`."""
    at: float | None = None
    """When the cached numbers were measured; None if no cache was used."""

    @property
    def used(self) -> int:
        """The bytes that count against the budget: originals and blobs, which pruning can remove."""
        return self.contents + sum(each.originals for each in self.workspaces)

    @property
    def undoable(self) -> int:
        return sum(each.undoable for each in self.workspaces)

    @property
    def oldest(self) -> float | None:
        return min((each.oldest for each in self.workspaces if each.oldest is not None), default=None)

    def parts(self) -> dict[str, int]:
        """The bytes of each part."""
        every = self.workspaces
        return {
            "originals": sum(each.originals for each in every),
            "contents": self.contents,
            "held": sum(each.held for each in every),
            "lists": sum(each.lists for each in every),
            "underWay": sum(each.under_way for each in every),
            "saved": sum(each.saved for each in every),
            "outputs": self.outputs,
            "scratch": self.scratch,
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "used": self.used,
            "budget": self.budget,
            "days": self.days,
            "undoable": self.undoable,
            "oldest": self.oldest,
            "measuredAt": self.at,
            "parts": self.parts(),
            "blobs": self.blobs,
            "workspaces": [each.to_json() for each in self.workspaces],
            "held": [each.to_json() for each in self.held],
        }


def use_of(area: Area, kept: tuple[int, int], undoable: tuple[int, float | None]) -> WorkspaceUse:
    """The usage of one workspace. `kept` is the result of `kept_of`. `undoable` is the number of runs that can be
    undone, and the time of the oldest of these runs."""
    found = WorkspaceUse(area.workspace, area.path, saved=_disk_usage_inside(area.saved))
    found.held, found.under_way = _disk_usage_inside(area.held), _disk_usage_inside(area.live)
    found.originals, found.lists = kept
    found.undoable, found.oldest = undoable
    return found


def kept_of(area: str, runs: Iterable[str]) -> tuple[int, int]:
    """The bytes of the originals of some runs, and the bytes of their manifests."""
    originals = lists = 0
    for run in runs:
        displaced = originals_of(area, run)
        originals += displaced
        lists += disk_usage(os.path.join(area, "kept", run)) - displaced
    return originals, lists


def originals_of(area: str, run: str) -> int:
    """The bytes of the originals of one run."""
    return _disk_usage_inside(os.path.join(area, "kept", run, OUT))


def _disk_usage_inside(directory: str) -> int:
    """The bytes of a directory's content; the directory itself does not count."""
    return sum(disk_usage(os.path.join(directory, name)) for name in names_in(directory))


def originals_in(area: Area) -> int:
    """The bytes of all originals of a workspace."""
    return sum(originals_of(area.path, run) for run in names_in(area.kept))


def held_in(areas: list[Area], rows: list[Row]) -> list[HeldChangeSet]:
    """The held change sets among `rows` that exist on disk, in the order of `rows`."""
    waiting = {(area.path, run) for area in areas for run in names_in(area.held)}
    found = [row for row in rows if (row.area, row.run) in waiting]
    return [HeldChangeSet(row.run, row.workspace, row.at, row.reason) for row in found]
