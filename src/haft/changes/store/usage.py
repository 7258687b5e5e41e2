"""How much of the disk the store takes, part by part.

`store` stands above and acts on it. What is counted are the blocks that the disk gave, each file once however many
names it has; what may not be looked into is not counted.
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
    """The bytes of the disk that a file or a directory takes, with everything beneath it."""
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
    """What a directory holds, in order; nothing where it cannot be looked into."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def format_bytes(size: float) -> str:
    """A number of bytes, as people say it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            shown = f"{size:.0f}" if unit == "bytes" or size >= 100 else f"{size:.1f}".removesuffix(".0")
            return f"{shown} {unit}"
        size /= 1000
    raise AssertionError


@dataclass(frozen=True, slots=True)
class HeldChangeSet:
    """A change set that waits for a person. It is never pruned."""

    run: str
    workspace: str
    since: float
    reason: str | None

    def to_json(self) -> dict[str, Any]:
        workspace = path_to_json(self.workspace)["path"]
        return {"run": self.run, "workspace": workspace, "since": self.since, "reason": self.reason}


@dataclass(slots=True)
class WorkspaceUse:
    """What is kept of one workspace."""

    workspace: str
    area: str
    originals: int = 0
    """What calls displaced, as it was."""
    lists: int = 0
    """Which paths each call changed."""
    held: int = 0
    under_way: int = 0
    """Layers of calls that have not ended, or whose host was killed."""
    saved: int = 0
    """What failed commits could not put back."""
    undoable: int = 0
    oldest: float | None = None
    """When the oldest of them was committed."""

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
    """The whole store."""

    budget: int
    days: float
    workspaces: list[WorkspaceUse] = field(default_factory=list)
    held: list[HeldChangeSet] = field(default_factory=list)
    blobs: int = 0
    """How many contents there are."""
    contents: int = 0
    """The bytes they take."""
    outputs: int = 0
    scratch: int = 0
    """What threads keep in their `/tmp`."""
    at: float | None = None
    """When the larger parts were measured, where that was not now."""

    @property
    def used(self) -> int:
        """What counts against the budget: all that pruning can give back."""
        return self.contents + sum(each.originals for each in self.workspaces)

    @property
    def undoable(self) -> int:
        return sum(each.undoable for each in self.workspaces)

    @property
    def oldest(self) -> float | None:
        return min((each.oldest for each in self.workspaces if each.oldest is not None), default=None)

    def parts(self) -> dict[str, int]:
        """By what it is."""
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
    """What is kept of a workspace: `kept` are the bytes of originals and lists, `undoable` how many runs there are that
    can be undone, and of when the oldest is."""
    found = WorkspaceUse(area.workspace, area.path, saved=_disk_usage_inside(area.saved))
    found.held, found.under_way = _disk_usage_inside(area.held), _disk_usage_inside(area.live)
    found.originals, found.lists = kept
    found.undoable, found.oldest = undoable
    return found


def kept_of(area: str, runs: Iterable[str]) -> tuple[int, int]:
    """The bytes of what some runs displaced, and of their lists."""
    originals = lists = 0
    for run in runs:
        displaced = originals_of(area, run)
        originals += displaced
        lists += disk_usage(os.path.join(area, "kept", run)) - displaced
    return originals, lists


def originals_of(area: str, run: str) -> int:
    """The bytes of what one run displaced."""
    return _disk_usage_inside(os.path.join(area, "kept", run, OUT))


def _disk_usage_inside(directory: str) -> int:
    """By what lies in it; an empty one takes nothing that could be given back."""
    return sum(disk_usage(os.path.join(directory, name)) for name in names_in(directory))


def originals_in(area: Area) -> int:
    """The bytes of all that was displaced in a workspace."""
    return sum(originals_of(area.path, run) for run in names_in(area.kept))


def held_in(areas: list[Area], rows: list[Row]) -> list[HeldChangeSet]:
    """The change sets that wait, of those that are said to, oldest first."""
    waiting = {(area.path, run) for area in areas for run in names_in(area.held)}
    found = [row for row in rows if (row.area, row.run) in waiting]
    return [HeldChangeSet(row.run, row.workspace, row.at, row.reason) for row in found]
