"""Makes the protected paths of a workspace read-only while a call runs.

Another call may be renaming files in the same workspace at this moment. So each path is opened once, without following
links, and from then on only its descriptor is used: the file that was checked is the file that becomes read-only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from haft.helper import kernel
from haft.helper.kernel import ATTR_RDONLY
from haft.helper.paths import open_without_links


def protect(workspace: str, names: Iterable[str], spared: Iterable[str]) -> None:
    """Make the protected `names` that exist read-only, and keep their parent directories from being renamed: a call
    could otherwise put other directories there. `spared` are the absolute paths that were granted."""
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
        # A granted path inside a protected one: make it writable again. Other granted paths get no mount, since a mount
        # point cannot be replaced, and many programs write a file by replacing it.
        if _is_in(os.path.dirname(name), closed):
            _cover(root, name, clear=ATTR_RDONLY)
    os.close(root)


def _exists_plainly(root: int, name: str) -> bool:
    """Whether the path exists and has no link in it. Paths with links are checked when the changes are applied."""
    place = open_without_links(root, name)
    if place is not None:
        os.close(place)
    return place is not None


def _cover(root: int, name: str, *, add: int = 0, clear: int = 0) -> None:
    """Bind a path over itself: a mount point can be neither renamed nor removed."""
    place = open_without_links(root, name)
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
