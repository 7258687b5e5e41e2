"""Resources for MCP clients: the output of runs, the files of skills, and the resources of hosted servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError

from haft.contracts import HaftError, Outcome
from haft.surfaces.mcp.calls import Calls
from haft.surfaces.mcp.offers.hosted import READ_RESOURCE, Hosted
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.offers.skills import SKILL_FILE, ServedSkills
from haft.surfaces.mcp.results import OUTPUT, OUTPUT_URI, SERVER_KEY
from haft.surfaces.mcp.run_access import RunAccess

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

SKILL: Final = "skill"
NEXT_KEY: Final = "dev.haft/next"
OUTPUT_TEMPLATE: Final = "haft://runs/{run}/output{?offset}"
NOT_FOUND: Final = -32602
NOT_FOUND_BEFORE_2026: Final = -32002
FAILED: Final = -32603
_ABOUT_OUTPUT: Final = (
    "The whole output of one of your runs. Of a long output, each read returns one page; `_meta` has the URI of the "
    "next page."
)


class Resources:
    """The resources of one server."""

    def __init__(
        self, offered: OfferedTools, calls: Calls, runs: RunAccess, skills: ServedSkills, hosted: Hosted
    ) -> None:
        self._offered = offered
        self._calls = calls
        self._runs = runs
        self._skills = skills
        self._hosted = hosted

    async def listed(self, context: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """All resources that have a URI of their own."""
        found = self._skills.resources() if self._offered.has(SKILL) else []
        if self._offered.has(READ_RESOURCE):
            found += [offer.form for offer in await self._hosted.resources()]
            return {"resources": found, **self._hosted.left_out("resources")}
        return {"resources": found}

    async def templates(self, context: ServerRequestContext[Any, Any]) -> dict[str, Any]:
        """The templates of resources."""
        own = {
            "uriTemplate": OUTPUT_TEMPLATE,
            "name": "output",
            "description": _ABOUT_OUTPUT,
            "mimeType": "text/plain",
        }
        if not self._offered.has(READ_RESOURCE):
            return {"resourceTemplates": [own]}
        found = [own, *(offer.form for offer in await self._hosted.templates())]
        return {"resourceTemplates": found, **self._hosted.left_out("templates")}

    async def read(self, context: ServerRequestContext[Any, Any], uri: str) -> dict[str, Any]:
        """The content of a resource."""
        output = OUTPUT.fullmatch(uri)
        if output is not None:
            return await self._output(context, uri, output[1], int(output[2] or 0))
        if self._offered.has(SKILL) and (located := self._skills.locate(uri)) is not None:
            skill, path = located
            reference = {} if path == SKILL_FILE else {"reference": path}
            ended = await self._calls.run(context, SKILL, {"name": skill.name, **reference}, context.params or {})
            if isinstance(ended, dict):
                return ended
            if not _is_no_text(ended):
                done_or_raise(ended)
            return {"contents": [await self._skill_file(context, uri, skill, path)]}
        if self._offered.has(READ_RESOURCE) and (hosted := await self._hosted.resource(uri)) is not None:
            server, name = hosted
            arguments = {"server": server, "uri": name}
            ended = await self._calls.run(context, READ_RESOURCE, arguments, context.params or {})
            ended = done_or_raise(ended)
            return ended if isinstance(ended, dict) else _of_server(ended.result, server)
        raise not_found(context, uri)

    async def _skill_file(self, context: Any, uri: str, skill: Any, path: str) -> dict[str, Any]:
        try:
            return await self._skills.contents(uri, skill, path)
        except (HaftError, OSError):
            raise not_found(context, uri) from None

    async def _output(self, context: ServerRequestContext[Any, Any], uri: str, run: str, offset: int) -> dict[str, Any]:
        try:
            page = await self._runs.page(run, self._calls.caller_of(context), offset)
        except HaftError:
            raise not_found(context, uri) from None
        meta = {}
        if page.next is not None:
            meta[NEXT_KEY] = f"{OUTPUT_URI.format(run=run)}?offset={page.next}"
        server = self._calls.server_of(page.record.tool, page.record.record["arguments"])
        if server is not None:
            meta[SERVER_KEY] = server
        contents: dict[str, Any] = {"uri": uri, "mimeType": "text/plain", "text": page.text}
        return {"contents": [{**contents, "_meta": meta} if meta else contents]}

    async def complete(self, context: ServerRequestContext[Any, Any], params: Mapping[str, Any]) -> list[str] | None:
        """Completions for the arguments of haft's own template; None for other templates."""
        if params["ref"].get("uri") not in (OUTPUT_TEMPLATE, OUTPUT_URI):
            return None
        if params["argument"]["name"] != "run":
            return []
        begin = params["argument"]["value"]
        runs = await self._runs.recent(self._calls.caller_of(context), limit=200)
        return [str(record.id) for record in runs if record.id.startswith(begin)][:100]


def _of_server(result: Mapping[str, Any], server: str) -> dict[str, Any]:
    """What a server answered to `resources/read`, with the name of the server beside each content. A mark in the text
    would spoil files for programs."""
    contents = [
        {**each, "_meta": {**(each.get("_meta") or {}), SERVER_KEY: server}} for each in result.get("contents", ())
    ]
    return {**result, "contents": contents}


def _is_no_text(outcome: Outcome) -> bool:
    """Whether the tool `skill` refused a file because it is no text. As a resource, it can be read."""
    return outcome.error is not None and outcome.error.code == "invalid-arguments"


def done_or_raise(ended: Outcome | dict[str, Any]) -> Any:
    """The outcome of a run that is done. Raises the error of a run that is not."""
    if isinstance(ended, dict) or ended.ok:
        return ended
    failure = ended.error
    said = f"the call ended as {ended.status}" if failure is None else failure.message
    hint = f" ({failure.hint})" if failure is not None and failure.hint else ""
    data = {"run": ended.run_id, "status": ended.status, "code": None if failure is None else failure.code}
    raise MCPError(code=FAILED, message=f"{said}{hint}", data=data)


def not_found(context: ServerRequestContext[Any, Any], uri: str) -> MCPError:
    """The error for a URI that no resource has."""
    is_modern = context.protocol_version >= "2026-07-28"
    code = NOT_FOUND if is_modern else NOT_FOUND_BEFORE_2026
    return MCPError(code=code, message="Resource not found", data={"uri": uri})
