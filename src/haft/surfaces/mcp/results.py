"""The outcome of a run as the result of an MCP call.

Some clients show the model only `structuredContent` where a result has it, others only the text. So everything that
the model must read stands in both: how the call ended, the run, its output, the error, the changed files, the notes.
A call that is done, and has nothing but text to say, is this text alone: as JSON, it would be harder to read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import Outcome, facts_for_model, facts_in_words, marked_text

RUN_KEY: Final = "dev.haft/run"
STATUS_KEY: Final = "dev.haft/status"
SERVER_KEY: Final = "dev.haft/server"
"""The key for the hosted MCP server that wrote something, where its text must stay as it is."""
OUTPUT_URI: Final = "haft://runs/{run}/output"
OUTPUT: Final = re.compile(r"haft://runs/([A-Za-z0-9_]{1,100})/output(?:\?offset=([0-9]{1,15}))?")
"""The URI of a run's output: the run, and the byte at which a page begins."""
_PAGER: Final = "`output` with run {run} pages through all of it"

_FACTS: Final[dict[str, Any]] = {
    "run": {"type": "string", "description": "The run of this call. `undo`, `diff`, `output` and `wait` take it."},
    "status": {"type": "string", "description": "done, error, rejected-by-user or cancelled."},
    "output": {"type": "string", "description": "The text that the tool wrote."},
    "error": {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": "string"},
            "retryable": {"type": "boolean"},
        },
        "required": ["code", "message"],
    },
    "changes": {
        "type": "object",
        "properties": {
            "state": {"type": "string"},
            "files": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"path": {"type": "string"}, "type": {"type": "string"}},
                    "required": ["path", "type"],
                },
            },
        },
        "required": ["state", "files"],
    },
    "notes": {"type": "array", "items": {"type": "string"}},
}


def outcome_schema(result: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the structured content of a tool whose value has the schema `result`. A schema that refers to
    itself as a whole is left out, because it is no longer the whole."""
    inner = {} if _refers_to_itself(result) else dict(result)
    # A reference inside the tool's schema starts at the schema's own top.
    definitions: dict[str, Any] = {key: inner.pop(key) for key in ("$defs", "definitions") if key in inner}
    inner.pop("$schema", None)
    return {
        "type": "object",
        "properties": {**_FACTS, "result": inner},
        "required": ["run", "status"],
        **definitions,
    }


def _refers_to_itself(schema: Any) -> bool:
    """Whether a reference in the schema leads to another place than its definitions."""
    if isinstance(schema, Mapping):
        reference = schema.get("$ref")
        if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
            return True
        return any(map(_refers_to_itself, schema.values()))
    return isinstance(schema, list | tuple) and any(map(_refers_to_itself, schema))


def result_of(outcome: Outcome, *, declares_schema: bool = False, server: str | None = None) -> dict[str, Any]:
    """The outcome as a `CallToolResult`, as it goes over the wire. `server` is the hosted MCP server that wrote the
    output; the model reads its name before the output."""
    run = outcome.run_id
    meta = {RUN_KEY: run, STATUS_KEY: outcome.status}
    content: list[dict[str, Any]] = []
    blocks = [dict(block) for block in outcome.content]
    facts = facts_for_model(outcome, _PAGER)
    output = outcome.output
    if server is not None and (output or blocks):
        output = marked_text(server, output)
    if output or not (blocks or facts):
        content.append({"type": "text", "text": output})
    content += blocks
    if not facts and outcome.result is None and not declares_schema:
        return {"content": content, "isError": False, "_meta": meta}
    if facts:
        content.append({"type": "text", "text": facts_in_words(outcome, facts)})
    if outcome.truncated:
        content.append(_output_link(outcome))
    result: dict[str, Any] = {"content": content, "isError": outcome.status != "done", "_meta": meta}
    if not blocks or declares_schema:
        # Clients that prefer structured content drop the other blocks, such as images.
        structured: dict[str, Any] = {"run": run, "status": outcome.status}
        if output:
            structured["output"] = output
        if outcome.result is not None:
            structured["result"] = outcome.result
        result["structuredContent"] = structured | facts
    return result


def _output_link(outcome: Outcome) -> dict[str, Any]:
    return {
        "type": "resource_link",
        "uri": OUTPUT_URI.format(run=outcome.run_id),
        "name": f"output of {outcome.run_id}",
        "description": "The whole output of the run.",
        "mimeType": "text/plain",
        "size": outcome.output_bytes,
    }


def without_links(result: dict[str, Any]) -> dict[str, Any]:
    """A result for clients of early versions, which know neither resource links nor structured content."""
    content = [
        {"type": "text", "text": f"[resource] {block['uri']}"} if block["type"] == "resource_link" else block
        for block in result["content"]
    ]
    return {key: value for key, value in result.items() if key != "structuredContent"} | {"content": content}


def text_result(text: str, structured: dict[str, Any] | None = None, *, is_error: bool = False) -> dict[str, Any]:
    """A result with one text. `structured` has the same facts for programs."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if structured is not None:
        result["structuredContent"] = structured
    return result
