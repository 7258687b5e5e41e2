"""Tools, as the catalogue lists them."""

from __future__ import annotations

from typing import Any, TypedDict

from haft.surfaces.http.api.types.given import Given


class ToolsGiven(Given):
    """Which tools are listed."""

    all: bool = False
    """Also tools that cannot be called, each with the reason."""
    source: str | None = None
    """Only tools of this kind."""


class Tool(TypedDict):
    name: str
    kind: str
    description: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    effects: dict[str, bool]
    enabled: bool
    state: str
    reason: str | None
    origin: str
    digest: str
    meta: dict[str, Any]


class ToolList(TypedDict):
    tools: list[Tool]
