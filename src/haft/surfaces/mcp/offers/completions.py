"""Completions for MCP clients: the runs of the client, and whatever hosted servers complete.

What the user types goes to the hosted server, so rules decide about it as about the call that would send it. Nobody is
asked: a keystroke must not open a dialogue. A completion that is not allowed has no values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from haft.contracts import BadUsage
from haft.surfaces.mcp.calls import Calls
from haft.surfaces.mcp.offers.hosted import READ_RESOURCE, Hosted
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.offers.prompts import Prompts
from haft.surfaces.mcp.offers.resources import Resources, done_or_raise

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from haft.service import ToolService


class Completions:
    """The completions of one server."""

    def __init__(
        self,
        service: ToolService,
        offered: OfferedTools,
        calls: Calls,
        resources: Resources,
        prompts: Prompts,
        hosted: Hosted,
    ) -> None:
        self._service = service
        self._offered = offered
        self._calls = calls
        self._resources = resources
        self._prompts = prompts
        self._hosted = hosted

    async def complete(self, context: ServerRequestContext[Any, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `completion/complete`."""
        ref = params["ref"]
        if ref["type"] == "ref/prompt":
            found = await self._prompts.server_of(ref["name"])
            return await self._of_server(context, params, found, "name")
        own = await self._resources.complete(context, params)
        if own is not None:
            return _values(own)
        found = await self._hosted.template(ref["uri"]) if self._offered.has(READ_RESOURCE) else None
        return await self._of_server(context, params, found, "uri")

    async def _of_server(
        self,
        context: ServerRequestContext[Any, Any],
        params: Mapping[str, Any],
        found: tuple[str, str] | None,
        key: str,
    ) -> dict[str, Any]:
        """What a hosted server completes the argument with. `found`: the server, and what it calls the prompt or the
        template."""
        if found is None:
            return _values([])
        server, known = found
        wanted = {**params, "ref": {**params["ref"], key: known}}
        caller = self._calls.caller_of(context)
        try:
            ended = await self._calls.follow(
                context, lambda: self._service.providers.complete(server, wanted, who=caller, thread=caller.thread)
            )
        except BadUsage:  # The prompt or the template has no such argument, or the server was removed.
            return _values([])
        if ended.status == "rejected-by-user":
            return _values([])
        answer: dict[str, Any] = done_or_raise(ended).result
        return answer


def _values(values: list[str]) -> dict[str, Any]:
    return {"completion": {"values": values, "hasMore": False}}
