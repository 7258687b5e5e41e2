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
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from haft.contracts import in_trace
from haft.service import SERVER_TOOLS
from haft.surfaces.mcp.calls import SKILL, CallerOf, Calls
from haft.surfaces.mcp.dialogues.dialogue import Dialogue
from haft.surfaces.mcp.dialogues.tasks import Tasks
from haft.surfaces.mcp.dialogues.waiting_calls import WaitingCalls
from haft.surfaces.mcp.offers.completions import Completions
from haft.surfaces.mcp.offers.hosted import Hosted
from haft.surfaces.mcp.offers.instructions import instructions
from haft.surfaces.mcp.offers.list_news import ListNews
from haft.surfaces.mcp.offers.log_messages import set_level
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.offers.own_tools import OwnTools
from haft.surfaces.mcp.offers.prompts import Prompts
from haft.surfaces.mcp.offers.resources import Resources
from haft.surfaces.mcp.offers.skills import EXTENSION, ServedSkills
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.results import without_links
from haft.version import __version__

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from haft.service import ToolService

    Context = ServerRequestContext[Any, Any]

FIRST_WITH_LINKS: Final = "2025-06-18"
"""The first version of the protocol with resource links and structured content."""
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
        self.offered = OfferedTools(service, globs=options.tools, read_only=options.read_only, taken=SERVER_TOOLS)
        self.calls = Calls(service, self.offered, caller_of)
        self.own = OwnTools(service, self.offered, self.calls, lazy=options.lazy, read_only=options.read_only)
        self.skills = ServedSkills(service)
        self.hosted = Hosted(service)
        self.resources = Resources(self.offered, self.calls, self.own.runs, self.skills, self.hosted)
        self.prompts = Prompts(self.offered, self.calls, self.skills, self.hosted)
        self.completions = Completions(service, self.offered, self.calls, self.resources, self.prompts, self.hosted)
        self.news = ListNews(service, self.skills)
        self.calls.after_skill = self.news.tools_changed
        self.server: Server[Any] = Server(
            "haft",
            version=__version__,
            title="haft",
            description="The tools of this workspace, under the rules of a person, with undo and an audit log.",
            instructions=instructions(lazy=options.lazy, read_only=options.read_only),
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
            on_subscriptions_listen=self.news.listen,
        )
        # Not as an argument of `Server`, which warns that newer clients do not use it.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list_skills)
        self.server.add_request_handler("skills/get", UriParameters, self._get_skill)
        self.server.extensions[EXTENSION] = {}
        self.server.middleware[:] = [self._short_way]
        self.waiting = WaitingCalls(service, dialogue or Dialogue())
        self.calls.wait, self.calls.join = self.waiting.wait, self.waiting.join
        self.calls.wait_batch, self.calls.join_batch = self.waiting.wait_batch, self.waiting.join_batch
        self.tasks = Tasks(self.waiting, caller_of, self.calls.result)
        self.tasks.add_to(self.server)

    def init_options(self) -> Any:
        """What `initialize` answers."""
        changes = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        return self.server.create_initialization_options(changes)

    # Tools.

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        return None if name in self.own else self.offered.input_schema(name)

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> Any:
        caller = self.calls.caller_of(context)
        tools = self.own.definitions()
        if not self.options.lazy:
            tools = self.offered.definitions(caller.thread) + tools
        return types.ListToolsResult.model_validate({"tools": tools}, by_name=False)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> Any:
        result = await self.call(context, params.name, params.arguments or {}, context.params or {})
        if context.protocol_version < FIRST_WITH_LINKS and "content" in result:
            result = without_links(result)
        return _answer(types.CallToolResult, result)

    # Resources, prompts, skills.

    async def _list_resources(self, context: Context, params: types.PaginatedRequestParams | None) -> Any:
        return _answer(types.ListResourcesResult, await self.resources.listed(context))

    async def _list_templates(self, context: Context, params: types.PaginatedRequestParams | None) -> Any:
        return _answer(types.ListResourceTemplatesResult, await self.resources.templates(context))

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> Any:
        return _answer(types.ReadResourceResult, await self.resources.read(context, str(params.uri)))

    async def _subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self.news.subscribe(context, str(params.uri), self.calls.caller_of(context))
        return types.EmptyResult()

    async def _unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.news.unsubscribe(context, str(params.uri))
        return types.EmptyResult()

    async def _list_prompts(self, context: Context, params: types.PaginatedRequestParams | None) -> Any:
        return _answer(types.ListPromptsResult, await self.prompts.listed(context))

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> Any:
        found = await self.prompts.get(context, params.name, params.arguments or {})
        return _answer(types.GetPromptResult, found)

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> Any:
        form = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        return _answer(types.CompleteResult, await self.completions.complete(context, form))

    async def _list_skills(self, context: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        skills = await self.skills.entries() if self.offered.has(SKILL) else []
        return {"skills": skills, "ttlMs": 0, "cacheScope": "private"}

    async def _get_skill(self, context: Context, params: UriParameters) -> dict[str, Any]:
        entry = await self.skills.entry(params.uri) if self.offered.has(SKILL) else None
        if entry is None:
            raise MCPError(code=types.INVALID_PARAMS, message="Skill not found", data={"uri": params.uri})
        return {"skill": entry, "ttlMs": 0, "cacheScope": "private"}

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        set_level(context, params.level)
        return types.EmptyResult()

    async def call(
        self,
        context: Context,
        name: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call one of the offered tools or of haft's own, and return the result as MCP writes it."""
        with in_trace((params.get("_meta") or {}).get("traceparent")):
            if name in self.own:
                return await self.own.call(context, name, arguments, params)
            return await self.calls.call(context, name, arguments, params)

    async def _short_way(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Make an ordinary call without the package's models."""
        params = ctx.params
        if ctx.method != "tools/call" or params is None or not _is_plain(params, ctx):
            if ctx.method == "notifications/initialized":
                self.news.connected(ctx)
            return await call_next(ctx)
        result = await self.call(ctx, params["name"], params.get("arguments") or {}, params)
        if ctx.protocol_version == MODERN_VERSION:
            result.setdefault("resultType", "complete")
            meta = result.setdefault("_meta", {})
            meta.setdefault(types.SERVER_INFO_META_KEY, self.server.server_info_stamp)
        return result


def _answer(model: type[BaseModel], result: dict[str, Any]) -> Any:
    """A result for the package. It adds what a version of the protocol requires to its own models, and not to a
    dictionary. A dictionary that says of which type it is, such as `input_required`, goes as it is."""
    return result if "resultType" in result else model.model_validate(result, by_name=False)


class UriParameters(types.RequestParams):
    """The parameters of a request that names one thing by its URI."""

    uri: str


def _is_plain(params: Mapping[str, Any], context: Context) -> bool:
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
