"""A scan of every path below a root: its kind and its last change, without reading content.

`snapshot` decides what to read. Nothing is left out: hidden and ignored files, nested repositories, empty directories,
special files. Only directories that the caller skips by device and inode are missing.

Not seen: writes through a memory mapping that was made before the scan and is still open, because the system updates
their times late. The clock that stamps files is assumed to be this machine's: if a file server's clock is far behind,
two writes within one tick of that clock look like one.
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
"""Mode, inode, device, links, owner, group, size, mtime, ctime (both in nanoseconds). As long as the stamp is equal,
the content is equal, unless it was racy. Directories have only mode, inode, device and owner; the rest is zero."""

_SECOND: Final = 1_000_000_000
_COARSE: Final[int | None] = getattr(time, "CLOCK_REALTIME_COARSE", None)
_TICK: Final = 20_000_000


@dataclass(slots=True)
class Scan:
    """The result of a scan, by path, parents before their content."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    """Targets of links, and device numbers."""
    attributes: dict[str, str | None] = field(default_factory=dict)
    """Extended attributes of paths that are not files, if there are any; None if they may not be read."""
    racy: set[str] = field(default_factory=set)
    """Paths that are neither file nor directory, and could change again without a new stamp."""
    closed: list[str] = field(default_factory=list)
    """Directories that could not be read."""


def scan(root: str, skip: Collection[tuple[int, int]], stopped: Callable[[], bool], note: Note | None = None) -> Scan:
    """Scan everything below `root`, without the root itself. Raises `Swapped` if a directory became something else
    meanwhile; paths that vanished are left out."""
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
    """Scan one directory. Returns its subdirectories."""
    try:
        return _look_at_each(descent.descriptor, path, found, skip)
    except PermissionError:
        # The directory can be listed, but its content cannot be inspected.
        descent.widen()
        return _look_at_each(descent.descriptor, path, found, skip)


def _look_at_each(descriptor: int, path: str, found: Scan, skip: Collection[tuple[int, int]]) -> list[str]:
    # Every file of the workspace passes this loop: it does only the necessary work.
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
    """Scan a link, pipe, socket or device. False if it is gone."""
    content = str(status.st_rdev)
    if stat.S_ISLNK(status.st_mode):
        try:
            content = os.readlink(name, dir_fd=descriptor)
        except OSError:  # Gone, or no longer a link: treated as absent.
            return False
    found.stamps[path] = stamp_of(status)
    found.contents[path] = content
    with contextlib.suppress(OSError):
        where = os.fsencode(f"/proc/self/fd/{descriptor}/") + os.fsencode(name)
        if (attributes := readable_attributes(where)) != "":
            found.attributes[path] = attributes
    return True


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file: it changes when the file does."""
    if stat.S_ISDIR(status.st_mode):
        return (*status[:3], 0, status.st_uid, status.st_gid, 0, 0, 0)
    return (*status[:7], status.st_mtime_ns, status.st_ctime_ns)


def now() -> int:
    """A time such that a change before it has another stamp than any later change: the clock that stamps files moves in
    ticks."""
    return time.time_ns() - _TICK if _COARSE is None else time.clock_gettime_ns(_COARSE)


def is_racy(ctime_ns: int, moment: int) -> bool:
    """Whether a change after `moment` could have the same stamp. Some filesystems store only whole or even seconds."""
    return ctime_ns >= (moment if ctime_ns % _SECOND else moment - 2 * _SECOND)
