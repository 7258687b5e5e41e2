"""Fills the catalogue with the built-in tools and the tools that a program passes.

This module is not part of the service, because commands that only list tools need this module, but not the service. The
package for Python tools, and pydantic with it, is imported only if there is a Python tool to describe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from haft.agents import Task
from haft.builtin import builtin_tools
from haft.contracts import BadConfig, Tool
from haft.registry import Catalogue

ToolLike = Tool | Callable[..., Any]


def fill_catalogue(
    catalogue: Catalogue,
    tools: Iterable[ToolLike] = (),
    task: Tool | None = None,
    *,
    builtin: Callable[[Catalogue], None] = lambda _catalogue: None,
) -> None:
    """Add the built-in tools, then the tools that a program passes. `task` is the tool that starts sub-agents, if it
    can be called, not only listed. `builtin` adds the built-in tools that depend on
    what is installed."""
    for tool in (*builtin_tools(), task or Task()):
        catalogue.add(tool)
    builtin(catalogue)
    for each in tools:
        catalogue.add(as_tool(each))


def as_tool(tool: ToolLike) -> Tool:
    """Returns a tool unchanged, and makes a Python tool from a function."""
    if isinstance(tool, Tool):
        return tool
    if callable(tool):
        from haft.sources.python import PythonTool
        from haft.sources.python import tool as as_tool

        made: PythonTool[..., Any] = as_tool(tool)
        return made
    raise BadConfig(f"{tool!r} is not a tool: pass a function or the result of @tool")
