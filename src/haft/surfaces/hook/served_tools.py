"""Recognizes haft's own tools when an agent calls them over MCP."""

from __future__ import annotations

from haft.lazy import regex
from haft.service import SERVER_TOOLS, ToolService, offered_name

_REPLACED = regex(r"[^A-Za-z0-9_-]")
"""The characters that agents replace in the names of tools."""


def is_served(service: ToolService, name: str) -> bool:
    """Whether haft's MCP server offers a tool under this name, as agents write names."""
    if name in SERVER_TOOLS:
        return True
    return any(
        _REPLACED.sub("_", offered_name(listing.spec.name, SERVER_TOOLS)) == name for listing in service.tools(all=True)
    )
