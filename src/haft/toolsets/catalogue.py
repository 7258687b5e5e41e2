"""Filling the catalogue: the built-in tools, those handed over, and those of installed packages.

Kept apart from the service because listing tools needs nothing else of it. The room of Python tools, and pydantic
behind it, is imported only where there is a Python tool to describe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from typing import Any, Final

from haft.builtin import builtin_tools
from haft.contracts import BadConfig, Tool
from haft.registry import Catalogue

INSTALLED_GROUP: Final = "haft.tools"
"""The entry point group that `sources.python` reads; said here too so that asking costs no import of it."""

ToolLike = Tool | Callable[..., Any]


def fill_catalogue(
    catalogue: Catalogue,
    tools: Iterable[ToolLike],
    *,
    installed: bool,
    builtin: Callable[[Catalogue], None] = lambda _catalogue: None,
) -> None:
    """The built-in tools, those handed over, and those of installed packages, in that order. `builtin` puts in those
    that depend on what lies on disk."""
    for tool in builtin_tools():
        catalogue.add(tool)
    builtin(catalogue)
    for each in tools:
        catalogue.add(as_a_tool(each))
    if installed and packages_offer_tools():
        from haft.sources.python import installed_tools

        found, broken = installed_tools()
        for tool in found:
            catalogue.add(tool)
        for missing in broken:
            catalogue.report_broken(missing.spec, missing.reason)


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


def as_a_tool(tool: ToolLike) -> Tool:
    """A tool as it is, a function as the tool it can be."""
    if isinstance(tool, Tool):
        return tool
    if callable(tool):
        from haft.sources.python import PythonTool
        from haft.sources.python import tool as as_tool

        made: PythonTool[..., Any] = as_tool(tool)
        return made
    raise BadConfig(f"{tool!r} is no tool: hand over a function or the result of @tool")
