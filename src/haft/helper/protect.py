"""What lies in a workspace and must not be written all the same: held read-only while a call runs.

Another call may be renaming things in the same workspace at this very moment. So every path is walked once, without
following links, and from then on only its descriptor is used: what is covered is what was looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from haft.helper import kernel
from haft.helper.kernel import ATTR_RDONLY
from haft.helper.paths import walked


def protect(workspace: str, names: Iterable[str], spared: Iterable[str]) -> None:
    """Make what would run later on the host read-only, where it exists, and hold its parents in place: who could
    rename those could put others there. What is `spared` was granted, by its absolute path."""
    root = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    inside = workspace.rstrip("/") + "/"
    free = [path.rstrip("/").removeprefix(inside) for path in spared if path.startswith(inside)]
    held: set[str] = set()
    closed: list[str] = []
    for name in names:
        if _is_in(name, free) or not _exists_plainly(root, name):
            continue
        for parent in _parents(name):
            if parent not in held:
                held.add(parent)
                _cover(root, parent)
        _cover(root, name, add=ATTR_RDONLY)
        closed.append(name)
    for name in free:
        # Granted inside of something protected: open again. Others stay as they are, since what is covered cannot be
        # replaced, and programs write by replacing.
        if _is_in(os.path.dirname(name), closed):
            _cover(root, name, clear=ATTR_RDONLY)
    os.close(root)


def _exists_plainly(root: int, name: str) -> bool:
    """Whether it is there, is no link, and none leads to it. Others are for whoever takes the changes in to judge."""
    place = walked(root, name)
    if place is not None:
        os.close(place)
    return place is not None


def _cover(root: int, name: str, *, add: int = 0, clear: int = 0) -> None:
    """Show something over itself: a mount point can be neither renamed nor removed."""
    place = walked(root, name)
    if place is not None:
        try:
            kernel.cover(place, add=add, clear=clear)
        finally:
            os.close(place)


def _parents(name: str) -> Iterator[str]:
    words = name.split("/")
    return ("/".join(words[:count]) for count in range(1, len(words)))


def _is_in(name: str, places: Iterable[str]) -> bool:
    return any(name == place or name.startswith(place + "/") for place in places)
