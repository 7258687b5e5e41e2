"""The catalogue of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from haft.surfaces.http.api.types.tools import Tool, ToolList, ToolsGiven

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask


async def list_tools(ask: Ask, given: ToolsGiven) -> ToolList:
    """The tools that this identity may call."""
    found = [
        cast("Tool", each.to_json())
        for each in ask.service.tools(all=given.all)
        if given.source in (None, each.spec.kind) and ask.identity.may_call(each.spec.name)
    ]
    return {"tools": found}
