"""The MCP server of an open service: the package's server with haft's handlers.

`tools/call` takes a short way: the package's models would validate each call and each result again, after haft has
checked the arguments and written the result. Other methods, and calls with anything unusual, go through the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from haft.surfaces.mcp.calls import CallerOf, Calls
from haft.surfaces.mcp.dialogue import Dialogue
from haft.surfaces.mcp.offered_tools import OfferedTools
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.own_tools import NAMES, OwnTools
from haft.surfaces.mcp.tasks import Tasks
from haft.surfaces.mcp.waiting_calls import WaitingCalls
from haft.version import __version__

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from haft.service import ToolService

INSTRUCTIONS: Final = "These tools run under the rules of a person."
PLAIN_VERSIONS: Final = frozenset({"2025-06-18", "2025-11-25"})
MODERN_VERSION: Final = "2026-07-28"
PLAIN_PARAMETERS: Final = frozenset({"name", "arguments", "_meta"})


class HaftServer:
    """One MCP server: all its connections offer the same tools."""

    def __init__(
        self, service: ToolService, options: ServeOptions, caller_of: CallerOf, dialogue: Dialogue | None = None
    ) -> None:
        """`dialogue` is the approver of the service; without it, clients are asked nothing."""
        self.service = service
        self.options = options
        self.offered = OfferedTools(service, globs=options.tools, read_only=options.read_only, taken=NAMES)
        self.calls = Calls(service, self.offered, caller_of)
        self.own = OwnTools(service, self.offered, self.calls, lazy=options.lazy, read_only=options.read_only)
        self.bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self.bus)
        self.server: Server[Any] = Server(
            "haft",
            version=__version__,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=self.offered.input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self.listen,
        )
        self.server.middleware[:] = [self._short_way]
        self.waiting = WaitingCalls(service, dialogue or Dialogue())
        self.calls.wait, self.calls.join = self.waiting.wait, self.waiting.join
        self.tasks = Tasks(self.waiting, caller_of, self.calls.result)
        self.tasks.add_to(self.server)

    def init_options(self) -> Any:
        """What `initialize` answers."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def _list_tools(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> Any:
        caller = self.calls.caller_of(context)
        tools = self.own.definitions()
        if not self.options.lazy:
            tools = self.offered.definitions(caller.thread) + tools
        return types.ListToolsResult.model_validate({"tools": tools}, by_name=False)

    async def _call_tool(self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Any:
        result = await self.call(context, params.name, params.arguments or {}, context.params or {})
        # The package adds `resultType` to its own models, and not to a dictionary.
        return result if "resultType" in result else types.CallToolResult.model_validate(result, by_name=False)

    async def call(
        self,
        context: ServerRequestContext[Any, Any],
        name: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call one of the offered tools or of haft's own, and return the result as MCP writes it."""
        if name in self.own:
            return await self.own.call(context, name, arguments, params)
        return await self.calls.call(context, name, arguments, params)

    async def _short_way(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Make an ordinary call without the package's models."""
        params = ctx.params
        if ctx.method != "tools/call" or params is None or not _is_plain(params, ctx):
            return await call_next(ctx)
        result = await self.call(ctx, params["name"], params.get("arguments") or {}, params)
        if ctx.protocol_version == MODERN_VERSION:
            result.setdefault("resultType", "complete")
            meta = result.setdefault("_meta", {})
            meta.setdefault(types.SERVER_INFO_META_KEY, self.server.server_info_stamp)
        return result


def _is_plain(params: Mapping[str, Any], context: ServerRequestContext[Any, Any]) -> bool:
    """Whether a call has only a name and arguments, from a client whose version of the protocol knows results as haft
    writes them, on a connection that is ready."""
    version = context.protocol_version
    return (
        (version == MODERN_VERSION or (version in PLAIN_VERSIONS and context.session.client_params is not None))
        and params.keys() <= PLAIN_PARAMETERS
        and type(params.get("name")) is str
        and isinstance(params.get("arguments") or {}, dict)
        and isinstance(params.get("_meta") or {}, dict)
    )
