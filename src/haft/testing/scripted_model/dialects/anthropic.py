"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from haft.testing.scripted_model.dialects.wire import Conversation, SentEvent, new_id, pieces, text_of
from haft.testing.scripted_model.steps import Fault, FaultKind, Turn

ERRORS: dict[FaultKind, tuple[int, str, str]] = {
    "rate-limited": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "server-error": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "unauthorized": (401, "authentication_error", "invalid x-api-key"),
    "context-overflow": (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    "invalid-request": (400, "invalid_request_error", "messages: the request is invalid"),
    "unknown-model": (404, "not_found_error", "model: scripted"),
}


class Anthropic:
    """The dialect of `anthropic:` models."""

    name = "anthropic"
    path = "/messages"

    def read(self, body: Mapping[str, Any]) -> Conversation:
        found = Conversation([tool["name"] for tool in body.get("tools") or []])
        found.system = text_of(body.get("system"))
        found.temperature, found.output_tokens = body.get("temperature"), body.get("max_tokens")
        for message in body.get("messages", []):
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if message["role"] == "assistant":
                for block in blocks:
                    found.add_call(block.get("id") if block["type"] == "tool_use" else None)
                continue
            for block in blocks:
                if block["type"] == "tool_result":
                    found.add_result(block["tool_use_id"], text_of(block.get("content")))
                elif block["type"] == "text":
                    found.add("user", block["text"])
        if found.output_tokens is None:
            found.problem = "max_tokens: Field required"
        return found

    def write(self, body: Mapping[str, Any], turn: Turn) -> tuple[Mapping[str, Any], list[SentEvent]]:
        blocks = [*_blocks(turn)]
        reason = "max_tokens" if turn.is_cut_off else "tool_use" if turn.calls else "end_turn"
        ending = {"stop_reason": reason, "stop_sequence": None}
        usage = {
            "input_tokens": turn.usage.input - turn.usage.cached,
            "output_tokens": turn.usage.output,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": turn.usage.cached,
        }
        start = {"id": new_id("msg_"), "type": "message", "role": "assistant", "model": body.get("model")}
        begun: dict[str, Any] = {**start, "content": [], "stop_reason": None, "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**begun, "usage": {**usage, "output_tokens": 1}}}
        ]
        for index, (block, empty, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": {**block, **empty}})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        events += [
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": turn.usage.output}},
            {"type": "message_stop"},
        ]
        sent = [SentEvent(event, event["type"], event["type"] == "content_block_delta") for event in events]
        return {**start, "content": [block for block, _, _ in blocks], **ending, "usage": usage}, sent

    def error(self, fault: Fault) -> tuple[int, Mapping[str, Any]]:
        status, kind, message = ERRORS[fault.kind]
        return fault.status or status, {
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": new_id("req_"),
        }

    def error_event(self, fault: Fault) -> SentEvent:
        return SentEvent(self.error(fault)[1], "error")


def _blocks(turn: Turn) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[dict[str, str]]]]:
    """Each part of an answer: whole, what it is before its first delta, and its deltas."""
    if turn.words is not None:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(turn.words)]
        yield {"type": "text", "text": turn.words}, {"text": ""}, deltas
    for call in turn.calls:
        block = {"type": "tool_use", "id": new_id("toolu_"), "name": call.name, "input": dict(call.arguments)}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.written)]
        yield block, {"input": {}}, deltas
