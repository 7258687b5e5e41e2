"""Prompts for MCP clients: the skills, and the prompts of hosted servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from haft.contracts import marked_text
from haft.surfaces.mcp.calls import Calls
from haft.surfaces.mcp.offers.hosted import GET_PROMPT, Hosted, Offer
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.offers.resources import SKILL, done_or_raise
from haft.surfaces.mcp.offers.skills import ServedSkills

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

UNKNOWN: Final = -32602


class Prompts:
    """The prompts of one server."""

    def __init__(self, offered: OfferedTools, calls: Calls, skills: ServedSkills, hosted: Hosted) -> None:
        self._offered = offered
        self._calls = calls
        self._skills = skills
        self._hosted = hosted

    async def listed(self, context: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """All prompts."""
        own = self._own()
        prompts = [{"name": name, "title": f"Skill: {name}", "description": about} for name, about in own.items()]
        found = [*prompts, *(offer.form for offer in await self._of_servers(own))]
        return {"prompts": found, **(self._hosted.left_out("prompts") if self._offered.has(GET_PROMPT) else {})}

    def _own(self) -> dict[str, str]:
        """The skills: their names and descriptions."""
        if not self._offered.has(SKILL):
            return {}
        return {skill.name: skill.description for skill in self._skills.found()}

    async def _of_servers(self, own: Mapping[str, str]) -> list[Offer]:
        return await self._hosted.prompts(own) if self._offered.has(GET_PROMPT) else []

    async def get(
        self, context: ServerRequestContext[Any, Any], name: str, arguments: Mapping[str, str]
    ) -> dict[str, Any]:
        """One prompt, with its arguments filled in."""
        own = self._own()
        if name in own:
            ended = done_or_raise(await self._calls.run(context, SKILL, {"name": name}, context.params or {}))
            if isinstance(ended, dict):
                return ended
            message = {"role": "user", "content": {"type": "text", "text": ended.output}}
            return {"description": own[name], "messages": [message]}
        offer = await self._hosted.prompt(name, own) if self._offered.has(GET_PROMPT) else None
        if offer is None:
            raise MCPError(code=UNKNOWN, message=f"Unknown prompt: {name[:100]}")
        wanted = {"server": offer.server, "name": offer.name, "arguments": dict(arguments)}
        ended = done_or_raise(await self._calls.run(context, GET_PROMPT, wanted, context.params or {}))
        return ended if isinstance(ended, dict) else _marked(ended.result, offer.server)

    async def server_of(self, name: str) -> tuple[str, str] | None:
        """The server of a prompt, and the name that the server knows; None if it is no prompt of a server."""
        own = self._own()
        if name in own or not self._offered.has(GET_PROMPT):
            return None
        offer = await self._hosted.prompt(name, own)
        return None if offer is None else (offer.server, offer.name)


def _marked(result: Mapping[str, Any], server: str) -> dict[str, Any]:
    """What a server answered to `prompts/get`, with its texts marked: clients give them to the model as words of the
    user."""
    messages = []
    for message in result.get("messages", ()):
        content = message["content"]
        if content.get("type") == "text":
            content = {**content, "text": marked_text(server, content["text"])}
        messages.append({**message, "content": content})
    return {**result, "description": marked_text(server, result.get("description") or ""), "messages": messages}
