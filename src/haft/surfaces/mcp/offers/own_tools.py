"""The tools that haft itself adds for MCP clients: about runs and their changes, and for searching tools.

Each reaches only runs of the client that calls it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import BadUsage, HaftError, ToolName, ToolSpec, is_batch_id, marked_text, outcome_from
from haft.service import LONGEST_PAGE, SERVER_TOOLS, OutputPage, check_arguments, search
from haft.surfaces.mcp.calls import LONGEST_WAIT, CallRequest, Calls, UnknownToolError, failure_result
from haft.surfaces.mcp.offers.batches import BATCH_PROPERTIES, OwnCall, call_together, still_running
from haft.surfaces.mcp.offers.offered_tools import OfferedTools
from haft.surfaces.mcp.results import result_of, text_result
from haft.surfaces.mcp.run_access import RunAccess, is_reversal
from haft.values import dataclass

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from haft.service import Run, RunRecord, ToolService

MOST_FOUND: Final = 50
MOST_RUNS: Final = 200
LONGEST_QUERY: Final = 1000
"""The longest query of `search_tools`. A search for millions of words would take a minute of processor time."""
POLL_SECONDS: Final = 0.2

_RUN: Final = {"type": "string", "minLength": 1, "description": "The id of a run of yours, such as `r_…`."}
_RUN_OR_BATCH: Final = {
    "type": "string",
    "minLength": 1,
    "description": "The id of a run or of a batch of yours, such as `r_…` or `b_…`.",
}
_READS: Final = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
_CHANGES: Final = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}

Handler = Callable[["OwnCall"], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class OwnTool:
    """One of haft's own tools."""

    description: str
    properties: Mapping[str, Any]
    annotations: Mapping[str, Any]
    handler: Handler
    required: tuple[str, ...] = ()

    def spec(self, name: str) -> ToolSpec:
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.properties), "additionalProperties": False}
        if self.required:
            schema["required"] = list(self.required)
        return ToolSpec(ToolName(name), "builtin", self.description, schema, provenance="builtin")

    def definition(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "description": self.description,
            "inputSchema": dict(self.spec(name).input_schema),
            "annotations": dict(self.annotations),
        }


LAZY_NAMES: Final = ("search_tools", "call_tool")


class OwnTools:
    """haft's own tools, for one server."""

    def __init__(
        self,
        service: ToolService,
        offered: OfferedTools,
        calls: Calls,
        *,
        lazy: bool = False,
        read_only: bool = False,
    ) -> None:
        self._service = service
        self._offered = offered
        self._calls = calls
        self._lazy = lazy
        self.runs = RunAccess(service)
        tools = self._table()
        if read_only:
            tools.pop("undo")
            tools.pop("redo")
        if not lazy:
            tools.pop("call_tool")
        self._tools: dict[str, OwnTool] = tools

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def definitions(self) -> list[dict[str, Any]]:
        """The definitions, as `tools/list` returns them."""
        shown = LAZY_NAMES if self._lazy else tuple(self._tools)
        return [self._tools[name].definition(name) for name in shown]

    async def call(
        self,
        context: ServerRequestContext[Any, Any],
        name: str,
        arguments: Mapping[str, Any],
        params: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call one of the tools. Errors of the caller are results that the model can read."""
        tool = self._tools[name]
        try:
            check_arguments(tool.spec(name), arguments)
            return await tool.handler(OwnCall(context, self._calls.caller_of(context), arguments, params))
        except HaftError as error:
            return failure_result(error)

    def _table(self) -> dict[str, OwnTool]:
        return {
            "batch": OwnTool(
                "Make several calls at once, and get their results together. The effects and results are those that "
                "the order of the list gives: a call that reads what an earlier one writes waits for it, and calls "
                "that do not depend on each other run at once. A failed call stops no other call, except those that "
                "name it in `after`. Calls that have not ended in time go on: `wait` waits for their runs.",
                BATCH_PROPERTIES,
                {"readOnlyHint": False},
                self._batch,
                ("calls",),
            ),
            "undo": OwnTool(
                "Take back the file changes of one of your runs, and of no other. Later changes of other runs stay; if "
                "a later change of the same lines is in the way, nothing is undone and the answer names the conflict. "
                "Without `run`: your last run that changed files. With a batch: the changes of all its runs.",
                {"run": _RUN_OR_BATCH},
                _CHANGES,
                self._undo,
            ),
            "redo": OwnTool(
                "Bring back the file changes of a run that was undone.", {"run": _RUN}, _CHANGES, self._redo, ("run",)
            ),
            "diff": OwnTool(
                "Show what one of your runs changed, as a patch.", {"run": _RUN}, _READS, self._diff, ("run",)
            ),
            "output": OwnTool(
                "Read the whole output of one of your runs, page by page, also if the result of the call showed only "
                "its beginning and end.",
                {
                    "run": _RUN,
                    "offset": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "The byte at which the page begins. The answer says where the next page begins.",
                    },
                    "first_line": {"type": "integer", "minimum": 1, "description": "Only lines from this one on."},
                    "last_line": {"type": "integer", "minimum": 1, "description": "Only lines up to this one."},
                    "containing": {"type": "string", "description": "Only lines with this text in them."},
                },
                _READS,
                self._output,
                ("run",),
            ),
            "wait": OwnTool(
                "Wait for one of your runs to end, for example one that waits for a person's approval, and return its "
                "result. If it has not ended in time, the answer says so, and you can wait again.",
                {
                    "run": _RUN,
                    "seconds": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 3600,
                        "description": f"How long to wait at most. Default: {LONGEST_WAIT:.0f}.",
                    },
                },
                _READS,
                self._wait,
                ("run",),
            ),
            "cancel": OwnTool(
                "Stop one of your runs, or one of your batches.",
                {"run": _RUN_OR_BATCH},
                _CHANGES,
                self._cancel,
                ("run",),
            ),
            "runs": OwnTool(
                "List your last runs, the newest first: their tool, status and changed files.",
                {
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_RUNS, "description": "Default: 20."},
                    "tool": {"type": "string", "description": "Only runs of this tool."},
                    "status": {
                        "type": "string",
                        "description": "Only runs with this status, such as `blocked-on-user` or `error`.",
                    },
                },
                _READS,
                self._list_runs,
            ),
            "search_tools": OwnTool(
                "Find tools by what they do. Searches names, descriptions and parameters of all tools, and returns the "
                "best matches with their input schemas."
                + (" Call a tool that you found with `call_tool`." if self._lazy else ""),
                {
                    "query": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": LONGEST_QUERY,
                        "description": "Words that say what you want to do.",
                    },
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "description": "Default: 10."},
                },
                _READS,
                self._search,
                ("query",),
            ),
            "call_tool": OwnTool(
                "Call a tool that `search_tools` found.",
                {
                    "name": {"type": "string", "minLength": 1, "description": "The name of the tool."},
                    "arguments": {"type": "object", "description": "Its arguments, as its input schema wants them."},
                },
                {"readOnlyHint": False},
                self._call,
                ("name",),
            ),
        }

    async def _batch(self, call: OwnCall) -> dict[str, Any]:
        return await call_together(self._calls, self._offered, self._tools, call)

    async def _undo(self, call: OwnCall) -> dict[str, Any]:
        name = call.arguments.get("run")
        if name is None:
            run = await self.runs.last_change(call.caller)
        elif is_batch_id(name):
            run = await self.runs.batch(name, call.caller)
        else:
            run = (await self._own(name, call)).id
        return await self._ended(call, self._service.undo(run, who=call.caller))

    async def _redo(self, call: OwnCall) -> dict[str, Any]:
        record = await self._own(call.arguments["run"], call)
        return await self._ended(call, self._service.redo(record.id, who=call.caller))

    async def _ended(self, call: OwnCall, run: Run) -> dict[str, Any]:
        outcome = await self._calls.wait(CallRequest(call.context, run.call.name, {}, call.caller, call.params), run)
        return outcome if isinstance(outcome, dict) else result_of(outcome)

    async def _own(self, name: str, call: OwnCall) -> RunRecord:
        return await self.runs.find(name, call.caller)

    async def _diff(self, call: OwnCall) -> dict[str, Any]:
        record = await self._own(call.arguments["run"], call)
        patch = await self._service.changes.diff(record.id)
        cut = len(patch) > LONGEST_PAGE
        shown = patch[:LONGEST_PAGE] + ("\n[the patch is longer]\n" if cut else "")
        return text_result(shown, {"run": record.id, "diff": shown, "truncated": cut})

    async def _output(self, call: OwnCall) -> dict[str, Any]:
        given = call.arguments
        by_line = given.keys() & {"first_line", "last_line", "containing"}
        if by_line and "offset" in given:
            raise BadUsage("`output` takes either `offset` or lines", hint="leave one of them out")
        if by_line:
            span = (given.get("first_line", 1), given.get("last_line"))
            page = await self.runs.lines(given["run"], call.caller, *span, given.get("containing"))
            return _page_result(page, "first_line", self._server_of(page.record))
        page = await self.runs.page(given["run"], call.caller, given.get("offset", 0))
        return _page_result(page, "offset", self._server_of(page.record))

    async def _wait(self, call: OwnCall) -> dict[str, Any]:
        seconds = float(call.arguments.get("seconds", LONGEST_WAIT))
        name = call.arguments["run"]
        live = self.runs.live(name, call.caller)
        if live is None:
            name = (await self._own(name, call)).id
            live = self.runs.live(name, call.caller)
        try:
            async with asyncio.timeout(seconds):
                if live is not None:
                    request = CallRequest(
                        call.context, live.call.name, live.call.arguments, call.caller, call.params, joined=True
                    )
                    ended = await self._calls.wait(request, live)
                    return ended if isinstance(ended, dict) else self._calls.result(ended, live.call.arguments)
                return await self._stored_result(name, call)  # It has ended, or is a run of another process.
        except TimeoutError:
            return still_running(name, (await self._own(name, call)).status if live is None else live.status)

    async def _stored_result(self, name: str, call: OwnCall) -> dict[str, Any]:
        """The result of a run that another process makes, as soon as it has ended."""
        while (record := await self._own(name, call)).is_open:  # noqa: ASYNC110  no event comes from that process
            await asyncio.sleep(POLL_SECONDS)
        return result_of(outcome_from(record.outcome), server=self._server_of(record))

    def _server_of(self, record: RunRecord) -> str | None:
        return self._calls.server_of(record.tool, record.record["arguments"])

    async def _cancel(self, call: OwnCall) -> dict[str, Any]:
        name = call.arguments["run"]
        if is_batch_id(name):
            name = await self.runs.batch(name, call.caller)
            stopped = await self._service.batches.cancel(name, who=call.caller)
        else:
            if self.runs.live(name, call.caller) is None:
                name = (await self._own(name, call)).id
            stopped = await self._service.runs.cancel(name, who=call.caller)
        said = f"{name} is being cancelled" if stopped else f"{name} had already ended"
        return text_result(said, {"run": name, "cancelled": stopped})

    async def _list_runs(self, call: OwnCall) -> dict[str, Any]:
        given = call.arguments
        wanted = {key: given[key] for key in ("tool", "status") if key in given}
        tool = wanted.get("tool")
        if tool is not None:
            wanted["tool"] = self._offered.known_name(tool)
        found = await self.runs.recent(call.caller, limit=int(given.get("limit", 20)), **wanted)
        rows = [self._row(record) for record in found]
        if tool is not None and (tool in SERVER_TOOLS or tool != wanted["tool"]):
            rows = [row for row in rows if row["tool"] == tool]  # Other runs have the same name in haft.
        lines = [
            f"{row['run']} {row['status']} {row['tool']}{' changed ' if row['files'] else ''}{', '.join(row['files'])}"
            for row in rows
        ]
        return text_result("\n".join(lines) or "you have no such runs", {"runs": rows})

    def _row(self, record: RunRecord) -> dict[str, Any]:
        return {
            "run": record.id,
            "tool": record.tool if is_reversal(record) else self._offered.shown_name(record.tool),
            "status": record.status,
            "startedAt": record.outcome["startedAt"],
            "changes": record.changes["state"],
            "files": record.changed_paths[:20],
        }

    async def _search(self, call: OwnCall) -> dict[str, Any]:
        listings = self._offered.listings(call.caller.thread)
        limit = int(call.arguments.get("limit", 10))
        found = await asyncio.to_thread(search, listings, call.arguments["query"], limit=limit)
        tools = [_found(self._offered.definition(listing.spec)) for listing in found]
        lines = [f"{tool['name']}: {tool['description']}\n  parameters: {_parameters(tool)}" for tool in tools]
        said = "\n".join(lines) or f"no tool matches; there are {len(listings)} tools: try other words"
        return text_result(said, {"tools": tools, "of": len(listings)})

    async def _call(self, call: OwnCall) -> dict[str, Any]:
        name, arguments = call.arguments["name"], call.arguments.get("arguments") or {}
        if name in self._tools and name not in LAZY_NAMES:
            return await self.call(call.context, name, arguments, call.params)
        try:
            return await self._calls.call(call.context, name, arguments, call.params)
        except UnknownToolError as error:  # The request itself is valid: the model can search, and call again.
            return failure_result(BadUsage(error.message, hint="`search_tools` finds tools"))


def _page_result(page: OutputPage, following: str, server: str | None) -> dict[str, Any]:
    text = page.text if server is None else marked_text(server, page.text)
    structured: dict[str, Any] = {"output": text, "totalBytes": page.total}
    result = text_result(text, structured)
    if page.next is not None:
        structured["next"] = {following: page.next}
        said = f"[haft] the output goes on: call `output` with {following} {page.next} for the next page"
        structured["note"] = said
        result["content"].append({"type": "text", "text": said})
    return result


def _found(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {key: definition[key] for key in ("name", "description", "inputSchema")}


def _parameters(tool: Mapping[str, Any]) -> str:
    return json.dumps(tool["inputSchema"].get("properties", {}), ensure_ascii=False)
