"""Reading the files whose content is not known from the index, and judging whether their stamps are reliable."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from haft.changes.commit.entry import UNREADABLE
from haft.changes.snapshots.descent import Descent, Note, Swapped
from haft.changes.snapshots.scan import Stamp, is_racy, now, stamp_of
from haft.contracts import ToolFailed
from haft.values import dataclass

Keep = Callable[[str, int, int], str]
"""Called with a path, a descriptor of the file and its size. Stores the content and returns its digest."""

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Read:
    """The state of one file when it was read."""

    stamp: Stamp
    content: str
    """The digest, or `UNREADABLE`."""
    racy: bool
    """Whether the stamp is unreliable: the file changed while it was read, or could change without a new stamp."""
    attributes: str | None = None


def read_files(
    root: str,
    paths: Iterable[str],
    stamps: Mapping[str, Stamp],
    keep: Keep,
    stopped: Callable[[], bool],
    note: Note | None = None,
) -> Iterator[tuple[str, Read | None]]:
    """Read the files at `paths`. Yields each path with the result, or with None if the path vanished. A file with
    several hard links is read once."""
    known: dict[Stamp, Read] = {}
    with Descent(root, note) as descent:
        for path in paths:
            if stopped():
                raise ToolFailed("the call was stopped while haft read the workspace")
            stamp = stamps[path]
            read = known.get(stamp) or _read(descent, path, stamp, keep)
            if read is not None and read.stamp[3] > 1:
                known[read.stamp] = read
            yield path, read


def _read(descent: Descent, path: str, stamp: Stamp, keep: Keep) -> Read | None:
    above, _, name = path.rpartition("/")
    try:
        descent.go(above)
        descriptor, attributes = descent.open_file(name)
    except FileNotFoundError:
        return None
    except PermissionError:
        return Read(stamp, UNREADABLE, False)
    try:
        return _read_until_stable(path, descriptor, keep, attributes)
    finally:
        os.close(descriptor)


def _read_until_stable(path: str, descriptor: int, keep: Keep, attributes: str | None) -> Read:
    """Read a file, and read it again if it changed meanwhile, at most `_TRIES` times. The last reading is returned."""
    moment, before = now(), os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        raise Swapped
    tries = 0
    while True:
        content, tries = keep(path, descriptor, before.st_size), tries + 1
        after = os.fstat(descriptor)
        steady = stamp_of(after) == stamp_of(before)
        if steady or tries == _TRIES:
            racy = not steady or is_racy(before.st_ctime_ns, moment)
            return Read(stamp_of(after), content, racy, attributes)
        moment, before = now(), after
