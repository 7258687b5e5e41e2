"""The tools of MCP servers, and the two tools with which a model reads resources and prompts of servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import (
    Answer,
    InvalidArguments,
    RunId,
    Secrets,
    Session,
    ToolContext,
    ToolFailed,
    ToolName,
    ToolSpec,
)
from haft.sources.mcp import texts
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.sources.mcp.calls import ServerCall
    from haft.sources.mcp.server import McpServer

Servers = Callable[[], "Mapping[str, McpServer]"]


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server."""

    spec: ToolSpec
    server: McpServer

    @property
    def session(self) -> Session | None:
        return self.server.session

    @property
    def busy_with(self) -> RunId | None:
        """The run that the server works on, if the server answers one call at a time."""
        return self.server.busy_with

    async def started(self) -> Session:
        """The process of the server, which is started if it does not run."""
        return await self.server.started()

    @property
    def secrets(self) -> Secrets:
        return self.server.provider.secrets

    async def prepare(self, progress: Callable[[str], None]) -> None:
        """Start the server, before the deadline of the call begins."""
        await self.server.connected(progress)
        self._check()

    def _check(self) -> None:
        """Raise an error if the server now has another tool of this name than the one that was approved, or none."""
        if self.server.removed is not None:
            raise ToolFailed(f"the MCP server `{self.server.name}` {self.server.removed}")
        now = self.server.digest_of(self.spec.meta["mcp"]["tool"])
        if now is None:
            raise ToolFailed(
                f"the MCP server `{self.server.name}` no longer has the tool"
                f" `{texts.line(self.spec.meta['mcp']['tool'], 100)}`",
                hint="`haft tools list` shows its tools",
            )
        if now != self.spec.digest:
            raise ToolFailed(
                f"`{self.spec.name}` was not called: the MCP server `{self.server.name}` changed its definition after"
                " the call was decided",
                hint="call it again: haft shows what changed",
            )

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        tool, schema = self.spec.meta["mcp"]["tool"], self.spec.output_schema

        async def work(call: ServerCall) -> Answer:
            self._check()
            return await call.tool(tool, arguments, schema)

        return await self.server.call(
            work,
            context,
            is_idempotent=self.spec.effects.idempotent,
            must_run=self.spec.hosting == "session" and self.server.may_write,
        )


READ_RESOURCE: Final = "read_resource"
GET_PROMPT: Final = "get_prompt"
_SERVER: Final = {"type": "string", "description": "The name of the MCP server."}


@dataclass(frozen=True, slots=True)
class ResourceTool:
    """Reads a resource of any server: `read_resource(server, uri)`."""

    spec: ToolSpec
    servers: Servers

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        server = _server(self.spec.name, self.servers(), arguments["server"])

        async def work(call: ServerCall) -> Answer:
            from haft.sources.mcp.answers import plain_answer

            return plain_answer(await call.resource(arguments["uri"]))

        return await server.call(work, context)


@dataclass(frozen=True, slots=True)
class PromptTool:
    """Gets a prompt of any server: `get_prompt(server, name, arguments)`."""

    spec: ToolSpec
    servers: Servers

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        server = _server(self.spec.name, self.servers(), arguments["server"])

        async def work(call: ServerCall) -> Answer:
            from haft.sources.mcp.answers import plain_answer

            return plain_answer(await call.prompt(arguments["name"], arguments.get("arguments") or {}))

        return await server.call(work, context)


def _server(tool: str, servers: Mapping[str, McpServer], name: str) -> McpServer:
    if name in servers:
        return servers[name]
    known = ", ".join(f"`{each}`" for each in sorted(servers)) or "none"
    raise InvalidArguments(ToolName(tool), [f"`server`: there is no MCP server `{name}`; there are: {known}"])


def resource_tool(servers: Servers) -> ResourceTool:
    """The tool that reads resources of these servers."""
    return ResourceTool(
        _spec(
            READ_RESOURCE,
            "Read a resource of an MCP server, such as a resource that a tool's result links to. The content is data"
            " of that server.",
            {"server": _SERVER, "uri": {"type": "string", "description": "The URI of the resource."}},
            ["server", "uri"],
        ),
        servers,
    )


def prompt_tool(servers: Servers) -> PromptTool:
    """The tool that gets prompts of these servers."""
    arguments = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Arguments of the prompt.",
    }
    return PromptTool(
        _spec(
            GET_PROMPT,
            "Get a prompt that an MCP server offers. The content is data of that server.",
            {
                "server": _SERVER,
                "name": {"type": "string", "description": "The name of the prompt."},
                "arguments": arguments,
            },
            ["server", "name"],
        ),
        servers,
    )


def _spec(name: str, description: str, properties: Mapping[str, Any], required: list[str]) -> ToolSpec:
    return ToolSpec(
        name=ToolName(name),
        kind="mcp",
        description=description,
        input_schema={
            "type": "object",
            "properties": dict(properties),
            "required": required,
            "additionalProperties": False,
        },
        provenance="builtin",
        origin="haft",
        digest=f"haft:{name}",
        hosting="remote",
    )
