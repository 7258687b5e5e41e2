"""Completions: what a server would complete an argument of a prompt or of a template with. The value so far goes to the
server, so a completion is decided like the call that would send it: `get_prompt` or `read_resource`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import Answer, BadUsage, ToolContext, ToolName, ToolSpec
from haft.sources.mcp import texts
from haft.sources.mcp.tool import GET_PROMPT, READ_RESOURCE
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.sources.mcp.server import McpServer

COMPLETE: Final = "complete"
MOST_VALUES: Final = 100
"""The most values of an answer, as MCP says."""
_SPEC: Final = ToolSpec(
    name=ToolName(COMPLETE),
    kind="mcp",
    description="Ask an MCP server for the completion of an argument.",
    input_schema={"type": "object"},
    provenance="builtin",
    origin="haft",
    digest=f"haft:{COMPLETE}",
    hosting="remote",
)


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion that a client wants."""

    tool: str
    """The tool whose call would send the argument to the server."""
    arguments: Mapping[str, Any]
    """The arguments of that call. Everything that the completion sends is in them."""
    argument: str
    """The name of the argument that is to be completed."""
    request: Mapping[str, Any]
    """What the server gets: the parameters of `completion/complete`."""


def completion_of(server: str, params: Mapping[str, Any]) -> Completion:
    """The completion that these parameters of `completion/complete` ask for. What has no place in the call that decides
    about it is left out. Raises `BadUsage` if the argument has none."""
    ref = params["ref"]
    name, value = params["argument"]["name"], params["argument"]["value"]
    given = {**((params.get("context") or {}).get("arguments") or {}), name: value}
    if ref["type"] == "ref/prompt":
        ref = {"type": ref["type"], "name": ref["name"]}
        tool, call = GET_PROMPT, {"server": server, "name": ref["name"], "arguments": given}
    else:
        ref = {"type": ref["type"], "uri": ref["uri"]}
        given, uri = _expanded(ref["uri"], name, given)
        tool, call = READ_RESOURCE, {"server": server, "uri": uri}
    request = {"ref": ref, "argument": {"name": name, "value": value}}
    if known := {key: each for key, each in given.items() if key != name}:
        request["context"] = {"arguments": known}
    return Completion(tool, call, name, request)


def _expanded(template: str, name: str, given: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Those of the values that a template takes, and the URI that it makes of them."""
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        parsed = UriTemplate.parse(template)
    except InvalidUriTemplate:
        raise BadUsage(f"`{template[:100]}` is no template of URIs") from None
    names = parsed.variable_names
    if name not in names:
        raise BadUsage(f"`{template[:100]}` has no argument `{name[:100]}`")
    taken = {key: each for key, each in given.items() if key in names}
    return taken, parsed.expand(taken)


@dataclass(frozen=True, slots=True)
class CompletionTool:
    """Asks a server for one completion. It is in no catalogue: only a surface that completes arguments makes it."""

    server: McpServer
    request: Mapping[str, Any]
    spec: ToolSpec = _SPEC

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        answer = shown_completion(await self.server.complete(self.request))
        return Answer(text="\n".join(answer["values"]), result={"completion": answer})


def shown_completion(found: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a server. A value goes back to the server as it is, so a value that cannot be shown as it is is
    left out."""
    values = [each for each in found.get("values", ()) if texts.is_plain(each, texts.LONGEST_MESSAGE)]
    counts = {key: found[key] for key in ("total", "hasMore") if found.get(key) is not None}
    return {"values": values[:MOST_VALUES], **texts.visible_json(counts)}
