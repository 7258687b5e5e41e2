"""What four agents send to their model, and what a model answers, in four dialects.

Each dialect reads a request into a `Conversation`, and writes a `Turn` as JSON or as a stream of events. Used by
`scripted_model`, which decides what the model says. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from itertools import chain


@dataclass
class Call:
    """A tool call of the model. A call with `text` has one string as its input and no arguments (Codex: custom tools).
    A tool in a `namespace` is one that Codex groups by MCP server."""

    name: str
    arguments: dict = field(default_factory=dict)
    text: str | None = None
    namespace: str | None = None


@dataclass
class Turn:
    """What the model answers: words, calls, or both."""

    words: str | None = None
    calls: list[Call] = field(default_factory=list)


@dataclass
class Conversation:
    """A request: the offered tools, and the events so far: ("user", text), ("calls", ""), ("result", text)."""

    tools: list[str | tuple[str, str]] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)


def text_of(value) -> str:
    """All text in a result of any shape."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_of, value)))
    if isinstance(value, dict):
        if value.get("type") in ("image", "input_image", "image_url") or "inlineData" in value:
            return "[image]"
        for key in ("text", "content", "output", "result", "response", "error"):
            if key in value:
                return text_of(value[key])
    return json.dumps(value, sort_keys=True)


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:20]


class Anthropic:
    """Anthropic Messages: Claude Code."""

    path = "/messages"

    @staticmethod
    def read(body: dict) -> Conversation:
        found = Conversation([tool["name"] for tool in body.get("tools") or []])
        for message in body.get("messages", []):
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if message["role"] == "assistant":
                if any(block["type"] == "tool_use" for block in blocks):
                    found.events.append(("calls", ""))
                continue
            for block in blocks:
                if block["type"] == "tool_result":
                    found.events.append(("result", text_of(block.get("content"))))
                elif block["type"] == "text":
                    found.events.append(("user", block["text"]))
        return found

    @staticmethod
    def write(body: dict, turn: Turn) -> tuple[dict, list[tuple[str | None, dict | str]]]:
        usage = {"input_tokens": 9, "output_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        blocks = [{"type": "text", "text": turn.words}] if turn.words is not None else []
        blocks += [
            {"type": "tool_use", "id": _id("toolu_"), "name": call.name, "input": call.arguments} for call in turn.calls
        ]
        ending = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
        start = {"id": _id("msg_"), "type": "message", "role": "assistant", "model": body.get("model"), "usage": usage}
        events: list[dict] = [{"type": "message_start", "message": {**start, "content": [], "stop_reason": None}}]
        for index, block in enumerate(blocks):
            empty, delta = (
                ({"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]})
                if block["type"] == "text"
                else (
                    {**block, "input": {}},
                    {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
                )
            )
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        events += [{"type": "message_delta", "delta": ending, "usage": usage}, {"type": "message_stop"}]
        return {**start, "content": blocks, **ending}, [(event["type"], event) for event in events]


class Responses:
    """OpenAI Responses: Codex."""

    path = "/responses"

    @staticmethod
    def read(body: dict) -> Conversation:
        found = Conversation()
        later = [item["tools"] for item in body.get("input") or [] if item.get("type") == "additional_tools"]
        for tool in [*(body.get("tools") or []), *chain.from_iterable(later)]:
            if tool.get("type") == "namespace":
                found.tools += [(tool["name"], inner["name"]) for inner in tool.get("tools", [])]
            else:
                found.tools.append(tool.get("name") or tool["type"])
        before = ""
        for item in body.get("input") or []:
            kind = item.get("type", "message")
            if kind.endswith("_call"):
                if not before.endswith("_call"):
                    found.events.append(("calls", ""))
            elif kind.endswith("_output"):
                found.events.append(("result", text_of(item.get("output"))))
            elif kind == "message" and item.get("role") == "user":
                found.events.append(("user", text_of(item.get("content"))))
            before = kind
        return found

    @staticmethod
    def write(body: dict, turn: Turn) -> tuple[dict, list[tuple[str | None, dict | str]]]:
        items: list[dict] = []
        if turn.words is not None:
            part = {"type": "output_text", "text": turn.words, "annotations": []}
            message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
            items.append({**message, "id": _id("msg_")})
        for call in turn.calls:
            item = {"id": _id("fc_"), "call_id": _id("call_"), "name": call.name, "status": "completed"}
            if call.text is not None:
                item |= {"type": "custom_tool_call", "input": call.text}
            else:
                item |= {"type": "function_call", "arguments": json.dumps(call.arguments)}
            items.append(item if call.namespace is None else {**item, "namespace": call.namespace})
        usage: dict = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        start = {"id": _id("resp_"), "object": "response", "created_at": int(time.time()), "model": body.get("model")}
        done = {**start, "status": "completed", "output": items, "usage": usage}
        events: list[dict] = [
            {"type": "response.created", "response": {**start, "status": "in_progress", "output": []}}
        ]
        for index, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": item})
            if item["type"] == "message":
                delta = {"item_id": item["id"], "content_index": 0, "delta": item["content"][0]["text"]}
                events.append({"type": "response.output_text.delta", "output_index": index, **delta})
            events.append({"type": "response.output_item.done", "output_index": index, "item": item})
        events.append({"type": "response.completed", "response": done})
        return done, [(event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events)]


class Chat:
    """OpenAI Chat Completions: opencode."""

    path = "/chat/completions"

    @staticmethod
    def read(body: dict) -> Conversation:
        found = Conversation([tool["function"]["name"] for tool in body.get("tools") or []])
        for message in body.get("messages", []):
            if message["role"] == "assistant" and message.get("tool_calls"):
                found.events.append(("calls", ""))
            elif message["role"] in ("tool", "user"):
                kind = {"tool": "result", "user": "user"}[message["role"]]
                found.events.append((kind, text_of(message.get("content"))))
        return found

    @staticmethod
    def write(body: dict, turn: Turn) -> tuple[dict, list[tuple[str | None, dict | str]]]:
        calls = [
            {
                "index": index,
                "id": _id("call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for index, call in enumerate(turn.calls)
        ]
        ending = "tool_calls" if calls else "stop"
        message = {"role": "assistant", "content": turn.words} | ({"tool_calls": calls} if calls else {})
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        start = {"id": _id("chatcmpl-"), "created": int(time.time()), "model": body.get("model")}
        whole = [{"index": 0, "message": message, "finish_reason": ending}]
        chunks = [
            {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": ending}]},
            {"choices": [], "usage": usage},
        ]
        events = [(None, {**start, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
        return {**start, "object": "chat.completion", "choices": whole, "usage": usage}, [*events, (None, "[DONE]")]


class Gemini:
    """Gemini's own: Gemini CLI."""

    path = "enerateContent"
    """The end of both `:generateContent` and `:streamGenerateContent`."""

    @staticmethod
    def read(body: dict) -> Conversation:
        declared = [tool.get("functionDeclarations", []) for tool in body.get("tools") or []]
        found = Conversation([function["name"] for functions in declared for function in functions])
        for message in body.get("contents", []):
            parts = message.get("parts", [])
            if message.get("role") == "model":
                if any("functionCall" in part for part in parts):
                    found.events.append(("calls", ""))
                continue
            for part in parts:
                if "functionResponse" in part:
                    found.events.append(("result", text_of(part["functionResponse"].get("response"))))
                elif "text" in part:
                    found.events.append(("user", part["text"]))
        return found

    @staticmethod
    def write(body: dict, turn: Turn) -> tuple[dict, list[tuple[str | None, dict | str]]]:
        parts: list[dict] = [{"text": turn.words}] if turn.words is not None else []
        parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in turn.calls]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": _id("")}
        return whole, [(None, whole)]


DIALECTS = (Anthropic, Responses, Chat, Gemini)
