"""Every path beneath a root with one look at each: what it is and when it last changed, no content read.

`snapshot` stands above and decides what to read. Nothing is left out: hidden, ignored, in nested repositories, empty,
neither file nor directory. Only what the caller names to be skipped, by device and inode, is not there at all.

Not seen: what a process writes through a mapping that it made before the scan and still holds; the system stamps
that late. And the clock that stamps files is taken to be this machine's: where a server far behind it stamps them, two
writes within one tick of its clock are one.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Collection
from typing import Final

from haft.changes.snapshots.descent import Descent, Note, readable_attributes
from haft.contracts import ToolFailed
from haft.values import dataclass, field

Stamp = tuple[int, ...]
"""Mode, inode, device, links, owner, group, size, mtime, ctime (both in nanoseconds): as long as it is the same, so is
the content, unless it was racy. Of directories only mode, inode, device and owner, the rest zero."""

_SECOND: Final = 1_000_000_000
_COARSE: Final[int | None] = getattr(time, "CLOCK_REALTIME_COARSE", None)
_TICK: Final = 20_000_000


@dataclass(slots=True)
class Scan:
    """What was found, by path, parents before what they hold."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    """Where links lead, and the numbers of devices."""
    attributes: dict[str, str | None] = field(default_factory=dict)
    """The extended ones of what is no file, where there are any; None where they may not be read."""
    racy: set[str] = field(default_factory=set)
    """What is neither file nor directory and could change again without another stamp."""
    closed: list[str] = field(default_factory=list)
    """Directories that could not be read."""


def scan(root: str, skip: Collection[tuple[int, int]], stopped: Callable[[], bool], note: Note | None = None) -> Scan:
    """Look at everything beneath `root`, the root itself not among it. `Swapped` when a directory became something else
    meanwhile; what vanished meanwhile is not there."""
    found = Scan()
    with Descent(root, note) as descent:
        waiting = [""]
        while waiting:
            path = waiting.pop()
            if stopped():
                raise ToolFailed("the call was stopped while it read the workspace")
            try:
                descent.go(path)
                below = _list(descent, path, found, skip)
                if path and (attributes := descent.attributes()) != "":
                    found.attributes[path] = attributes
            except FileNotFoundError:
                found.stamps.pop(path, None)
            except PermissionError:
                if not path:
                    raise
                found.closed.append(path)
            else:
                waiting += reversed(below)
    return found


def _list(descent: Descent, path: str, found: Scan, skip: Collection[tuple[int, int]]) -> list[str]:
    """Look at what one directory holds; the directories among it."""
    try:
        return _look_at_each(descent.descriptor, path, found, skip)
    except PermissionError:
        # It may be listed, but what is in it may not be looked at.
        descent.widen()
        return _look_at_each(descent.descriptor, path, found, skip)


def _look_at_each(descriptor: int, path: str, found: Scan, skip: Collection[tuple[int, int]]) -> list[str]:
    # The loop that every file of the workspace goes through: it does nothing for a file that it need not do.
    prefix = f"{path}/" if path else ""
    stamps, below, moment = found.stamps, [], now()
    with os.scandir(descriptor) as items:
        for item in items:
            try:
                status = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            here = prefix + item.name
            if stat.S_ISREG(status.st_mode):
                stamps[here] = (*status[:7], status.st_mtime_ns, status.st_ctime_ns)
            elif stat.S_ISDIR(status.st_mode):
                if (status.st_dev, status.st_ino) not in skip:
                    stamps[here] = stamp_of(status)
                    below.append(here)
            elif _look_at_other(descriptor, item.name, here, status, found) and is_racy(status.st_ctime_ns, moment):
                found.racy.add(here)
    return below


def _look_at_other(descriptor: int, name: str, path: str, status: os.stat_result, found: Scan) -> bool:
    """A link, pipe, socket or device. False where it is gone."""
    content = str(status.st_rdev)
    if stat.S_ISLNK(status.st_mode):
        try:
            content = os.readlink(name, dir_fd=descriptor)
        except OSError:  # Gone, or no link any more: as if it had not been there yet.
            return False
    found.stamps[path] = stamp_of(status)
    found.contents[path] = content
    with contextlib.suppress(OSError):
        where = os.fsencode(f"/proc/self/fd/{descriptor}/") + os.fsencode(name)
        if (attributes := readable_attributes(where)) != "":
            found.attributes[path] = attributes
    return True


def stamp_of(status: os.stat_result) -> Stamp:
    """What changes when the file does."""
    if stat.S_ISDIR(status.st_mode):
        return (*status[:3], 0, status.st_uid, status.st_gid, 0, 0, 0)
    return (*status[:7], status.st_mtime_ns, status.st_ctime_ns)


def now() -> int:
    """The moment before which a change must have been made to be told, by its stamp, from any later one: the clock by
    which files are stamped goes in ticks."""
    return time.time_ns() - _TICK if _COARSE is None else time.clock_gettime_ns(_COARSE)


def is_racy(ctime_ns: int, moment: int) -> bool:
    """Whether a change after `moment` could bear the same stamp. Some filesystems count only whole seconds, or two."""
    return ctime_ns >= (moment if ctime_ns % _SECOND else moment - 2 * _SECOND)
