"""Follows links step by step, and tells whether a path is in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

MAX_STEPS: Final = 16


def steps_of(path: str) -> Iterator[str]:
    """The path itself. If the path is a link, also each path that the link leads to, up to the last. An interpreter is
    often a link to a link, and a call must see every step. Links among the directories above are not followed."""
    for _ in range(MAX_STEPS):
        yield path
        if not os.path.islink(path):
            return
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))


def leads_inside(path: str, root: str) -> bool:
    """Whether a path is in the directory `root`, or is a link that leads to or through a path in `root`."""
    return any(lies_inside(step, root) for step in steps_of(path))


def lies_inside(path: str, root: str) -> bool:
    """Whether a path, as written or with links resolved, is `root` or is in it. Both forms count, so that a link cannot
    make a file of a workspace look like a file of the user."""
    inside = root.rstrip("/") + "/"
    return any(f"{way}/".startswith(inside) for way in (os.path.abspath(path), os.path.realpath(path)))
