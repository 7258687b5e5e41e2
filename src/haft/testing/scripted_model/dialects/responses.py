"""OpenAI Responses."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from haft.testing.scripted_model.dialects.openai_errors import error_body
from haft.testing.scripted_model.dialects.wire import Conversation, SentEvent, new_id, pieces, text_of
from haft.testing.scripted_model.steps import Call, Fault, Turn

OVERFLOW = "Your input exceeds the context window of this model. Please adjust your input and try again."


class Responses:
    """The dialect of `openai:` models."""

    name = "openai-responses"
    path = "/responses"

    def read(self, body: Mapping[str, Any]) -> Conversation:
        found = Conversation(system=body.get("instructions") or "", results_follow_calls=False)
        found.temperature, found.output_tokens = body.get("temperature"), body.get("max_output_tokens")
        given = body.get("input") or []
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        later = [item["tools"] for item in items if item.get("type") == "additional_tools"]
        for tool in [*(body.get("tools") or []), *chain.from_iterable(later)]:
            if tool.get("type") == "namespace":
                found.tools += [(tool["name"], inner["name"]) for inner in tool.get("tools", [])]
            else:
                found.tools.append(tool.get("name") or tool["type"])
        for item in items:
            kind, role = item.get("type", "message"), item.get("role")
            if kind.endswith("_call") or kind == "reasoning" or role == "assistant":
                found.add_call(item.get("call_id"))
            elif kind.endswith("_output"):
                found.add_result(item.get("call_id"), text_of(item.get("output")))
            elif kind == "message" and role == "user":
                found.add("user", text_of(item.get("content")))
            elif kind == "message":
                found.system += text_of(item.get("content"))
        return found

    def write(self, body: Mapping[str, Any], turn: Turn) -> tuple[Mapping[str, Any], list[SentEvent]]:
        status = "incomplete" if turn.is_cut_off else "completed"
        items = [*_items(turn, status)]
        usage = {
            "input_tokens": turn.usage.input,
            "output_tokens": turn.usage.output,
            "total_tokens": turn.usage.input + turn.usage.output,
            "input_tokens_details": {"cached_tokens": turn.usage.cached, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        start: dict[str, Any] = {
            "id": new_id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "model": body.get("model"),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
        }
        done = {**start, "status": status, "output": items, "usage": usage}
        if turn.is_cut_off:
            done["incomplete_details"] = {"reason": "max_output_tokens"}
        begun = {**start, "status": "in_progress", "output": [], "usage": None}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for index, item in enumerate(items):
            events += [{"output_index": index, **event} for event in _item_events(item)]
        events.append({"type": f"response.{status}", "response": done})
        return done, [
            SentEvent({**event, "sequence_number": number}, event["type"], event["type"].endswith(".delta"))
            for number, event in enumerate(events)
        ]

    def error(self, fault: Fault) -> tuple[int, Mapping[str, Any]]:
        return error_body(fault, overflow=OVERFLOW, overflown="input")

    def error_event(self, fault: Fault) -> SentEvent:
        error = {**self.error(fault)[1]["error"], "type": "error", "sequence_number": 99}
        return SentEvent({**error, "code": error["code"] or "server_error"}, "error")


def _items(turn: Turn, status: str) -> Iterator[dict[str, Any]]:
    if turn.words is not None:
        part = {"type": "output_text", "text": turn.words, "annotations": []}
        ended = status if not turn.calls else "completed"
        yield {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": ended, "content": [part]}
    for call in turn.calls:
        ended = status if call is turn.calls[-1] else "completed"
        yield {"id": new_id("fc_"), "call_id": new_id("call_"), "name": call.name, "status": ended, **_input(call)}


def _input(call: Call) -> dict[str, Any]:
    group = {} if call.namespace is None else {"namespace": call.namespace}
    if call.text is not None:
        return {"type": "custom_tool_call", "input": call.text, **group}
    return {"type": "function_call", "arguments": call.written, **group}


def _item_events(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of an item: opened empty, filled by pieces, closed."""
    opened = {**item, "status": "in_progress"}
    if item["type"] == "message":
        (part,) = item["content"]
        at = {"item_id": item["id"], "content_index": 0}
        yield {"type": "response.output_item.added", "item": {**opened, "content": []}}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    else:
        key = "input" if item["type"] == "custom_tool_call" else "arguments"
        kind = "custom_tool_call_input" if key == "input" else "function_call_arguments"
        yield {"type": "response.output_item.added", "item": {**opened, key: ""}}
        for piece in pieces(item[key]):
            yield {"type": f"response.{kind}.delta", "item_id": item["id"], "delta": piece}
        yield {"type": f"response.{kind}.done", "item_id": item["id"], "name": item["name"], key: item[key]}
    yield {"type": "response.output_item.done", "item": item}
