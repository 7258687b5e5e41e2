"""The links through which a path leads: whoever changes one of them changes what the path means."""

from __future__ import annotations

import os
from typing import Final

_MOST_NAMES: Final = 1_000


def links_on_way(path: str) -> list[str]:
    """The links through which an absolute path leads now, the last name included. The directories of each are without
    links."""
    found: list[str] = []
    left, at = path.split("/")[::-1], ""
    for _ in range(_MOST_NAMES):
        if not left:
            break
        name = left.pop()
        if name == "..":
            at = at.rpartition("/")[0]
        if name in ("", ".", ".."):
            continue
        here = f"{at}/{name}"
        try:
            target = os.readlink(here)
        except (OSError, ValueError):
            at = here
            continue
        found.append(here)
        at = "" if target.startswith("/") else at
        left += target.split("/")[::-1]
    return found
