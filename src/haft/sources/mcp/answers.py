"""Turns the results of MCP servers into answers of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from pydantic import BaseModel

from haft.contracts import Answer, BadConfig, Failure, ToolFailed
from haft.schema import validator_for
from haft.sources.mcp import texts

MOST_CONTENT: Final = 20_000_000
"""The most bytes of all blocks of a result that are no text."""
MOST_BLOCKS: Final = 1_000
LONGEST_FAILURE: Final = 500


def answer_of(server: str, tool: str, result: types.CallToolResult, output_schema: Mapping[str, Any] | None) -> Answer:
    """The answer of a tool: its texts are the output, `structuredContent` is the result, and other blocks are the
    content."""
    tool = texts.line(tool, 100)
    said: list[str] = []
    content: list[Mapping[str, Any]] = []
    size = dropped = 0
    for block in result.content:
        if isinstance(block, types.TextContent):
            said.append(texts.visible(block.text))
            continue
        plain = plain_block(block)
        size += len(json.dumps(plain))
        if size > MOST_CONTENT or len(content) >= MOST_BLOCKS:
            dropped += 1
        else:
            content.append(plain)
    if dropped:
        said.append(f"[haft left out {dropped} blocks: the result is larger than {MOST_CONTENT:_} bytes]")
    structured = texts.visible_json(result.structured_content)
    text = "\n".join(said)
    if not text and structured is not None:
        text = structured if isinstance(structured, str) else json.dumps(structured, ensure_ascii=False)
    failure = _failure(server, tool, result, text, output_schema)
    return Answer(text=text, result=structured, failure=failure, content=tuple(content))


def _failure(
    server: str, tool: str, result: types.CallToolResult, text: str, output_schema: Mapping[str, Any] | None
) -> Failure | None:
    if result.is_error:
        why = texts.line(text, LONGEST_FAILURE)
        return Failure("tool-failed", f"`{tool}` of the MCP server `{server}` failed: {why or 'it gave no reason'}")
    if output_schema is None:
        return None
    if result.structured_content is None and "structured_content" not in result.model_fields_set:
        problem: str | None = "it has no structured content, although the tool has an output schema"
    else:
        problem = _mismatch(result.structured_content, output_schema)
    if problem is None:
        return None
    return Failure("tool-failed", f"the result of `{tool}` of the MCP server `{server}` is not valid: {problem}")


def _mismatch(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Why a structured result does not fit the tool's own output schema; None if it fits, or if the schema cannot be
    used."""
    try:
        problems = validator_for(schema).problems(value)
    except BadConfig:
        return None
    return None if not problems else texts.line("; ".join(problems[:3]))


def plain_block(block: BaseModel) -> dict[str, Any]:
    """A content block as plain JSON. Its texts are visible; its data is unchanged if it is base64."""
    found: dict[str, Any] = texts.visible_json(block.model_dump(by_alias=True, mode="json", exclude_none=True))
    return found


def plain_answer(result: BaseModel) -> Answer:
    """A result of a server that is no result of a tool, as JSON."""
    plain = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    shown = texts.visible_json(
        {key: value for key, value in plain.items() if key not in ("resultType", "ttlMs", "cacheScope")}
    )
    text = json.dumps(shown, ensure_ascii=False)
    if len(text) > MOST_CONTENT:
        raise ToolFailed(f"the result of the MCP server is larger than {MOST_CONTENT:_} bytes")
    return Answer(text=text, result=shown)
