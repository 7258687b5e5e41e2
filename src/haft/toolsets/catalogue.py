"""Filling the catalogue with the built-in tools and those handed over.

Kept apart from the service because listing tools needs nothing else of it. The room of Python tools, and pydantic
behind it, is imported only where there is a Python tool to describe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from haft.builtin import builtin_tools
from haft.contracts import BadConfig, Tool
from haft.registry import Catalogue

ToolLike = Tool | Callable[..., Any]


def fill_catalogue(
    catalogue: Catalogue,
    tools: Iterable[ToolLike] = (),
    *,
    builtin: Callable[[Catalogue], None] = lambda _catalogue: None,
) -> None:
    """The built-in tools, then those handed over. `builtin` puts in those that depend on what there is."""
    for tool in builtin_tools():
        catalogue.add(tool)
    builtin(catalogue)
    for each in tools:
        catalogue.add(as_a_tool(each))


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
