"""The outcome of a run as the result of an MCP call.

Some clients show the model only `structuredContent` where a result has it, others only the text. So everything that
the model must read stands in both: how the call ended, the run, its output, the error, the changed files, the notes.
A call that is done, and has nothing but text to say, is this text alone: as JSON, it would be harder to read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import Outcome, marked_text

RUN_KEY: Final = "dev.haft/run"
STATUS_KEY: Final = "dev.haft/status"
SERVER_KEY: Final = "dev.haft/server"
"""The key for the hosted MCP server that wrote something, where its text must stay as it is."""
MOST_FILES: Final = 50
OUTPUT_URI: Final = "haft://runs/{run}/output"
OUTPUT: Final = re.compile(r"haft://runs/([A-Za-z0-9_]{1,100})/output(?:\?offset=([0-9]{1,15}))?")
"""The URI of a run's output: the run, and the byte at which a page begins."""

_FOR_THE_USER: Final = ("sandbox-denied", "rejected")
"""Errors whose hint says how to allow what was refused."""
_GRANT: Final = re.compile(r"--(network|write|read|env)\b|\bgrant\b")

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
    facts = _facts(outcome)
    output = outcome.output
    if server is not None and (output or blocks):
        output = marked_text(server, output)
    if output or not (blocks or facts):
        content.append({"type": "text", "text": output})
    content += blocks
    if not facts and outcome.result is None and not declares_schema:
        return {"content": content, "isError": False, "_meta": meta}
    if facts:
        content.append({"type": "text", "text": _words(outcome, facts)})
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


def _facts(outcome: Outcome) -> dict[str, Any]:
    """The facts that the model must read beside the output; empty if the call is done and there are none."""
    facts: dict[str, Any] = {}
    error = outcome.error
    if error is not None:
        facts["error"] = {"code": error.code, "message": error.message, "retryable": error.retryable}
        if error.hint:
            facts["error"]["hint"] = for_user(outcome) if error.code in _FOR_THE_USER else error.hint
    changes = outcome.changes
    if changes.files:
        files = [{"path": each.path, "type": each.type} for each in changes.files[:MOST_FILES]]
        facts["changes"] = {"state": changes.state, "files": files}
        if len(changes.files) > MOST_FILES:
            facts["changes"]["more"] = len(changes.files) - MOST_FILES
    notes = [for_user(outcome) if _GRANT.search(note) else note for note in outcome.notes]
    notes = list(dict.fromkeys(notes))
    if outcome.truncated:
        notes.append(
            f"the output has {outcome.output_bytes:_} bytes, and only its beginning and end are here: "
            f"`output` with run {outcome.run_id} pages through all of it"
        )
    if notes:
        facts["notes"] = notes
    return facts


def for_user(outcome: Outcome) -> str:
    """A hint in place of one that says how to open the sandbox, or how to allow the call: that is for the person."""
    return f"the user can see what this is about, and allow it, with `haft show {outcome.run_id}`"


def _words(outcome: Outcome, facts: Mapping[str, Any]) -> str:
    """The facts as text."""
    lines = [f"[haft] run {outcome.run_id}: {outcome.status}"]
    error = facts.get("error")
    if error is not None:
        lines.append(f"error ({error['code']}): {error['message']}")
        if "hint" in error:
            lines.append(f"hint: {error['hint']}")
    changes = facts.get("changes")
    if changes is not None:
        more = f" and {changes['more']} more" if "more" in changes else ""
        files = ", ".join(f"{each['path']} ({each['type']})" for each in changes["files"])
        lines.append(f"changed files ({changes['state']}): {files}{more}")
    lines += [f"note: {note}" for note in facts.get("notes", ())]
    return "\n".join(lines)


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
