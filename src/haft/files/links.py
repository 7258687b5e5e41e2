"""Where paths lead: links step by step, and whether something lies in a directory by any way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

MOST_STEPS: Final = 16


def steps_of(path: str) -> Iterator[str]:
    """The path itself and, where it is a link, each file that it leads to, up to the last. An interpreter is often a
    link to a link, and each step of the way must be there. Links among the directories above are not looked at."""
    for _ in range(MOST_STEPS):
        yield path
        if not os.path.islink(path):
            return
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))


def leads_inside(path: str, root: str) -> bool:
    """Whether a path lies in a directory, or is a link that leads there or on from there."""
    return any(lies_inside(step, root) for step in steps_of(path))


def lies_inside(path: str, root: str) -> bool:
    """Whether a path is a directory or lies in it, by its words or by where it leads: by neither does what a workspace
    brings become the user's."""
    inside = root.rstrip("/") + "/"
    return any(f"{way}/".startswith(inside) for way in (os.path.abspath(path), os.path.realpath(path)))
