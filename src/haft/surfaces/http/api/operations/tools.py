"""The catalogue of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from haft.contracts import UnknownTool
from haft.service import search, tool_definitions

if TYPE_CHECKING:
    from haft.contracts import Listing
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.tools import (
        Definitions,
        DefinitionsGiven,
        Preview,
        PreviewGiven,
        Tool,
        ToolGiven,
        ToolList,
        ToolsGiven,
    )


async def list_tools(ask: Ask, given: ToolsGiven) -> ToolList:
    """The tools of the workspace; for those who call tools, only those that they may call."""
    found = _listed(ask, is_all=given.all, thread=given.thread)
    if given.search:
        found = search(found, given.search)
    return {"tools": [_shown(each) for each in found if given.source in (None, each.spec.kind)]}


async def show_tool(ask: Ask, given: ToolGiven) -> Tool:
    """One tool, also one that cannot be called."""
    return _shown(find_tool(ask, given.tool))


async def define_tools(ask: Ask, given: DefinitionsGiven) -> Definitions:
    """The definitions of the tools for the API of a model provider, or for MCP."""
    made, left_out = tool_definitions(_listed(ask, is_all=False, thread=given.thread), given.form)
    return {"definitions": made, "leftOut": left_out}


async def preview_call(ask: Ask, given: PreviewGiven) -> Preview:
    """The line in which a tool says what a call would do."""
    find_tool(ask, given.tool)
    return {"preview": await ask.service.preview(given.tool, given.args)}


def find_tool(ask: Ask, name: str) -> Listing:
    """The tool with this name. Raises `UnknownTool` if there is none that this identity may see."""
    known = _listed(ask, is_all=True, thread=None)
    found = next((each for each in known if each.spec.name == name), None)
    if found is None:
        raise UnknownTool(name, [each.spec.name for each in known if each.enabled])
    return found


def _listed(ask: Ask, *, is_all: bool, thread: str | None) -> list[Listing]:
    acts_in = None if thread is None else ask.identity.principal(thread).thread
    found = ask.service.tools(all=is_all, thread=acts_in)
    if ask.identity.may("call-tools"):
        found = [each for each in found if ask.identity.may_call(each.spec.name)]
    return found


def _shown(listing: Listing) -> Tool:
    return cast("Tool", listing.to_json())
