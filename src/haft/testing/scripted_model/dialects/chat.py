"""OpenAI Chat Completions, which many other providers speak too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from haft.testing.scripted_model.dialects.openai_errors import error_body
from haft.testing.scripted_model.dialects.wire import Conversation, SentEvent, new_id, pieces, text_of
from haft.testing.scripted_model.steps import Fault, Turn

OVERFLOW = (
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens. "
    "Please reduce the length of the messages."
)


class Chat:
    """The dialect of `openai-chat:` models."""

    name = "openai-chat"
    path = "/chat/completions"

    def read(self, body: Mapping[str, Any]) -> Conversation:
        found = Conversation([tool["function"]["name"] for tool in body.get("tools") or []])
        found.temperature = body.get("temperature")
        found.output_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
        for message in body.get("messages", []):
            text = text_of(message.get("content"))
            match message["role"]:
                case "assistant":
                    found.add("answer")
                    for call in message.get("tool_calls") or []:
                        found.add_call(call["id"])
                case "tool":
                    found.add_result(message["tool_call_id"], text)
                case "user":
                    found.add("user", text)
                case _:
                    found.system += text
        return found

    def write(self, body: Mapping[str, Any], turn: Turn) -> tuple[Mapping[str, Any], list[SentEvent]]:
        calls = [
            {"id": new_id("call_"), "type": "function", "function": {"name": call.name, "arguments": call.written}}
            for call in turn.calls
        ]
        reason = "length" if turn.is_cut_off else "tool_calls" if calls else "stop"
        usage = {
            "prompt_tokens": turn.usage.input,
            "completion_tokens": turn.usage.output,
            "total_tokens": turn.usage.input + turn.usage.output,
            "prompt_tokens_details": {"cached_tokens": turn.usage.cached},
        }
        start = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": body.get("model")}
        message = {"role": "assistant", "content": turn.words} | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": message, "finish_reason": reason}
        whole = {**start, "object": "chat.completion", "choices": [choice], "usage": usage}

        def chunk(delta: Mapping[str, Any], reason: str | None = None) -> Mapping[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return {**start, "object": "chat.completion.chunk", "choices": [choice]}

        events = [SentEvent(chunk({"role": "assistant", "content": "" if turn.words is not None else None}))]
        events += [SentEvent(chunk({"content": piece}), is_piece=True) for piece in pieces(turn.words or "")]
        for index, one in enumerate(calls):
            opened = {**one, "index": index, "function": {"name": turn.calls[index].name, "arguments": ""}}
            events.append(SentEvent(chunk({"tool_calls": [opened]})))
            events += [
                SentEvent(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), is_piece=True)
                for piece in pieces(turn.calls[index].written)
            ]
        events.append(SentEvent(chunk({}, reason)))
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append(SentEvent({**start, "object": "chat.completion.chunk", "choices": [], "usage": usage}))
        return whole, [*events, SentEvent("[DONE]")]

    def error(self, fault: Fault) -> tuple[int, Mapping[str, Any]]:
        return error_body(fault, overflow=OVERFLOW, overflown="messages")

    def error_event(self, fault: Fault) -> SentEvent:
        return SentEvent(self.error(fault)[1])
