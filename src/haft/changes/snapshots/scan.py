"""A scan of every path below a root: its kind and its last change, without reading content.

`snapshot` decides which files to read. The scan includes hidden and ignored files, nested repositories, empty
directories and special files. It leaves out only the directories that the caller wants to skip.

The scan does not notice writes through a memory mapping that was made before the scan and still exists, because the
system updates the times of the file late. The scan assumes that files get their times from this machine's clock: if a
file server's clock is far behind, two writes within one tick of that clock look like one.
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
"""Mode, inode, device, links, owner, group, size, mtime, ctime (both in nanoseconds) of a path. As long as the stamp is
equal, the content is equal, unless the stamp was racy (see `is_racy`). A directory's stamp has only mode, inode,
device, owner and group; the rest is zero."""

_SECOND: Final = 1_000_000_000
_COARSE: Final[int | None] = getattr(time, "CLOCK_REALTIME_COARSE", None)
_TICK: Final = 20_000_000


@dataclass(slots=True)
class Scan:
    """The result of a scan, by path, each directory before its content."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    """Targets of links, and device numbers."""
    attributes: dict[str, str | None] = field(default_factory=dict)
    """Extended attributes of paths that are not files, if there are any; None if they may not be read."""
    racy: set[str] = field(default_factory=set)
    """Paths of links and special files that could change again without a new stamp."""
    closed: list[str] = field(default_factory=list)
    """Directories that could not be read."""


def scan(root: str, skip: Collection[tuple[int, int]], stopped: Callable[[], bool], note: Note | None = None) -> Scan:
    """Scan everything below `root`, without the root itself. Directories whose device and inode are in `skip` are left
    out, and so are paths that vanish during the scan. Raises `Swapped` if a directory becomes something else
    meanwhile."""
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
    """Add the content of one directory to `found`. Returns its subdirectories."""
    try:
        return _look_at_each(descent.descriptor, path, found, skip)
    except PermissionError:
        # The names in the directory can be listed, but not their status read.
        descent.widen()
        return _look_at_each(descent.descriptor, path, found, skip)


def _look_at_each(descriptor: int, path: str, found: Scan, skip: Collection[tuple[int, int]]) -> list[str]:
    # This loop runs for every file of the workspace, so it must be fast.
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
    """Add a link, pipe, socket or device to `found`. Returns False if it is gone."""
    content = str(status.st_rdev)
    if stat.S_ISLNK(status.st_mode):
        try:
            content = os.readlink(name, dir_fd=descriptor)
        except OSError:  # The link is gone, or something else has its name: it is left out.
            return False
    found.stamps[path] = stamp_of(status)
    found.contents[path] = content
    with contextlib.suppress(OSError):
        where = os.fsencode(f"/proc/self/fd/{descriptor}/") + os.fsencode(name)
        if (attributes := readable_attributes(where)) != "":
            found.attributes[path] = attributes
    return True


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a path, from its stat result."""
    if stat.S_ISDIR(status.st_mode):
        return (*status[:3], 0, status.st_uid, status.st_gid, 0, 0, 0)
    return (*status[:7], status.st_mtime_ns, status.st_ctime_ns)


def now() -> int:
    """The time by the clock from which files get their times. This clock moves in ticks. If a path was last changed
    before this time, every change after this call gives the path another stamp."""
    return time.time_ns() - _TICK if _COARSE is None else time.clock_gettime_ns(_COARSE)


def is_racy(ctime_ns: int, moment: int) -> bool:
    """Whether a change after `moment`, a result of `now`, could leave the ctime as it is. Then a stamp with this ctime
    is unreliable: racy. Some filesystems store times only in steps of one or two seconds."""
    return ctime_ns >= (moment if ctime_ns % _SECOND else moment - 2 * _SECOND)
