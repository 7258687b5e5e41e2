"""Whether any installed package offers tools, found out without the cost of asking `importlib.metadata`."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from typing import Final

INSTALLED_GROUP: Final = "haft.tools"
"""The entry point group that `sources.python` reads; said here too so that asking costs no import of it."""


def packages_offer_tools() -> bool:
    """Whether any installed package may have an entry for us.

    `importlib.metadata` knows for certain, and importing it takes longer than everything else that listing tools does.
    So the files it would parse are looked at first, and it is asked only where one of them names our group, or where
    packages are kept in a way that only it understands.
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
