"""Checks whether any installed package offers tools, without the cost of importing `importlib.metadata`."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from typing import Final

INSTALLED_GROUP: Final = "haft.tools"
"""The entry point group that `sources.python` reads. Repeated here, because importing `sources.python` would take
long."""


def packages_offer_tools() -> bool:
    """Whether any installed package may have an entry point for haft.

    `importlib.metadata` would know for certain, but importing it takes longer than everything else that listing tools
    does. So this function reads the files that `importlib.metadata` would parse. It imports `importlib.metadata` only
    if one of these files names haft's group, or if packages are installed in another form.
    """
    if _kept_in_directories() and not any(map(_names_our_group, sys.path)):
        return False
    from importlib.metadata import entry_points

    return bool(entry_points(group=INSTALLED_GROUP))


def _kept_in_directories() -> bool:
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    plain = all(not path.endswith((".egg", ".zip", ".whl")) or not os.path.exists(path) for path in sys.path)
    return finders == [PathFinder] and plain


def _names_our_group(directory: str) -> bool:
    try:
        with os.scandir(directory or ".") as found:
            names = [entry.name for entry in found if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    return any(_mentions(os.path.join(directory or ".", name, "entry_points.txt")) for name in names)


def _mentions(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return INSTALLED_GROUP.encode() in file.read()
    except OSError:
        return False
