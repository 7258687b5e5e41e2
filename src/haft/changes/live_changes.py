"""The changes that a running call has made so far, read from another process. The call's layer is copied first: reading
a layer changes it, and the call still writes to it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

from haft.changes.commit.area import Area, known_areas, remove
from haft.changes.commit.images import Side
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.tree import Tree
from haft.changes.diff.difference import FileDifference, differences
from haft.changes.engines.layer import LayerReader, take_stamp
from haft.changes.engines.layer_copy import copy_of_layer
from haft.contracts import ConflictingPath, ToolFailed
from haft.values import dataclass

ATTEMPTS: Final = 5
NOT_ENDED: Final = "it has not ended yet"


@dataclass(frozen=True, slots=True)
class LiveChanges:
    """What a running call has changed so far."""

    run: str
    entries: Sequence[PathChange]
    workspace: str
    new_files: str
    """The directory with a copy of the new files."""
    state: str = "none"
    engine: str = "overlay"
    complete: bool = False
    reason: str | None = NOT_ENDED
    conflicts: tuple[ConflictingPath, ...] = ()

    def differences(self) -> Iterator[FileDifference]:
        """The difference of each file."""
        with Tree(self.workspace) as before, Tree(self.new_files, forced=True) as after:

            def read(each: PathChange, side: Side) -> BinaryIO | None:
                with contextlib.suppress(OSError):
                    return os.fdopen((before if side == "before" else after).read(each.path), "rb")
                return None

            yield from differences(self.entries, read)


@contextlib.contextmanager
def open_live_changes(home: str, run: str) -> Iterator[LiveChanges | None]:
    """What a running call has changed so far; None if it does not work in a layer. `home` is the state home's directory
    for all workspaces. Raises `ToolFailed` if the call changes files faster than they can be copied."""
    found = _find(home, run)
    if found is None:
        yield None
        return
    area, place = found
    os.makedirs(os.path.join(area.path, "looks"), mode=0o700, exist_ok=True)
    look = tempfile.mkdtemp(dir=os.path.join(area.path, "looks"))
    try:
        target = _copied(place, look)
        upper = os.path.join(target, "upper")
        with Tree(area.workspace) as workspace, Tree(upper, forced=True) as new:
            entries = LayerReader(workspace, new, take_stamp(look)).read().entries
        yield LiveChanges(run, tuple(entries), area.workspace, upper)
    finally:
        remove(look)


def _copied(place: str, look: str) -> str:
    for attempt in range(1, ATTEMPTS + 1):
        target = os.path.join(look, str(attempt))
        os.mkdir(target, 0o700)
        try:
            copy_of_layer(place, target)
        except PermissionError as error:
            raise ToolFailed(f"the changes so far cannot be read: {error}") from error
        except OSError:
            continue  # A file was removed at this moment.
        return target
    raise ToolFailed("the changes so far cannot be read: the files change too fast", hint="try again")


def _find(home: str, run: str) -> tuple[Area, str] | None:
    """The area and the directory of the layer of a running call."""
    for area in known_areas(home):
        with contextlib.suppress(OSError), os.scandir(area.live) as hosts:
            for host in hosts:
                place = os.path.join(host.path, f"{run}.layer")
                if os.path.isdir(os.path.join(place, "upper")):
                    return area, place
    return None
