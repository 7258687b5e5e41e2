"""The calls that a past run made: calls of MCP tools become recorded answers, and other tools are loaded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from haft.contracts import BadUsage, Listing
from haft.runs import RunRecord
from haft.testing.recording.past_run import PastRun
from haft.testing.recording.secret_finder import PLACEHOLDER, SecretFinder
from haft.testing.recording.tool_places import ToolPlace, WorkspaceTools
from haft.values import dataclass, field


@dataclass
class NestedCalls:
    """What a scenario needs for the MCP servers and the other tools of a run."""

    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The part `mcp` of the scenario."""
    load: list[str] = field(default_factory=list)
    """The absolute paths to load."""
    notes: list[str] = field(default_factory=list)


def nested_calls(run: PastRun, place: ToolPlace, tools: WorkspaceTools, finder: SecretFinder) -> NestedCalls:
    """The recorded answers of MCP servers, and what to load. An MCP server that changed files is loaded itself, because
    a recorded answer changes nothing."""
    found = NestedCalls(load=list(place.load))
    if is_mcp(place.listing) and not run.changed:
        found.load.clear()
        _add(found, place.listing, run.record, finder)
    for child in run.children:
        try:
            other = tools.find(child.tool)
        except BadUsage as error:
            found.notes.append(f"the call of {child.tool} that the tool made: {error.message}")
            continue
        if is_mcp(other.listing) and not child.record["changes"]["files"]:
            _add(found, other.listing, child, finder)
        else:
            found.load += [each for each in other.load if each not in found.load]
    for name in found.servers:
        found.notes.append(f"the answers of the MCP server {name} are recorded, so that the scenario does not start it")
    return found


def is_mcp(listing: Listing) -> bool:
    """Whether a tool is one of an MCP server."""
    return listing.spec.kind == "mcp" and "tool" in listing.spec.meta.get("mcp", {})


def _add(found: NestedCalls, listing: Listing, record: RunRecord, finder: SecretFinder) -> None:
    spec = listing.spec
    named = spec.meta["mcp"]
    server = found.servers.setdefault(named["server"], {"tools": [], "calls": []})
    definition: dict[str, Any] = {
        "name": named["tool"],
        "description": spec.description.removeprefix(f"[MCP server {named['server']}] "),
        "inputSchema": json.loads(json.dumps(spec.input_schema, default=dict)),
    }
    if spec.output_schema is not None:
        definition["outputSchema"] = json.loads(json.dumps(spec.output_schema, default=dict))
    if definition not in server["tools"]:
        server["tools"].append(finder.masked(definition, f"the description of {spec.name}"))
    server["calls"].append(_answer(named["tool"], record, f"the answer of {spec.name}", finder))


def _answer(tool: str, record: RunRecord, part: str, finder: SecretFinder) -> dict[str, Any]:
    outcome = record.outcome
    answer: dict[str, Any] = {"tool": tool}
    args = finder.masked(record.record["arguments"], f"the arguments of {record.tool}")
    if PLACEHOLDER not in json.dumps(args):
        answer["args"] = args
    text, result = outcome["output"], outcome["result"]
    if text and not (isinstance(result, dict | list) and text == json.dumps(result, ensure_ascii=False)):
        answer["text"] = finder.masked(text, part)
    if result is not None:
        answer["result"] = finder.masked(result, part)
    if outcome["status"] != "done":
        answer["error"] = True
    if outcome["content"]:
        answer["content"] = finder.masked(outcome["content"], part)
    return answer


def texts_of(records: Iterable[RunRecord]) -> list[Any]:
    """Everything that calls gave and got, in which there may be secrets."""
    found: list[Any] = []
    for each in records:
        outcome = each.outcome
        found += [each.record["arguments"], outcome["output"], outcome["result"], outcome["content"]]
    return found
