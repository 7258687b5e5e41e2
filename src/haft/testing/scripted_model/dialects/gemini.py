"""Gemini's own API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.testing.scripted_model.dialects.wire import Conversation, SentEvent, new_id, text_of
from haft.testing.scripted_model.steps import Fault, FaultKind, Turn

ERRORS: dict[FaultKind, tuple[int, str, str]] = {
    "rate-limited": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "server-error": (500, "INTERNAL", "An internal error has occurred."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "unauthorized": (401, "UNAUTHENTICATED", "The request does not have valid authentication credentials."),
    "context-overflow": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1300000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "invalid-request": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "unknown-model": (404, "NOT_FOUND", "models/scripted is not found."),
}


class Gemini:
    """The dialect of Gemini CLI. Its streams have one event, and its calls are objects."""

    name = "gemini"
    path = "enerateContent"
    """The end of both `:generateContent` and `:streamGenerateContent`."""

    def read(self, body: Mapping[str, Any]) -> Conversation:
        declared = [tool.get("functionDeclarations", []) for tool in body.get("tools") or []]
        found = Conversation([function["name"] for functions in declared for function in functions])
        settings = body.get("generationConfig") or {}
        found.temperature, found.output_tokens = settings.get("temperature"), settings.get("maxOutputTokens")
        found.system = text_of((body.get("systemInstruction") or {}).get("parts"))
        for message in body.get("contents", []):
            if message.get("role") == "model":
                found.add("answer")
                continue
            for part in message.get("parts", []):
                if "functionResponse" in part:
                    found.add("result", text_of(part["functionResponse"].get("response")))
                elif "text" in part:
                    found.add("user", part["text"])
        return found

    def write(self, body: Mapping[str, Any], turn: Turn) -> tuple[Mapping[str, Any], list[SentEvent]]:
        parts: list[dict[str, Any]] = [] if turn.words is None else [{"text": turn.words}]
        parts += [{"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in turn.calls]
        reason = "MAX_TOKENS" if turn.is_cut_off else "STOP"
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}
        usage = {
            "promptTokenCount": turn.usage.input,
            "candidatesTokenCount": turn.usage.output,
            "totalTokenCount": turn.usage.input + turn.usage.output,
        }
        whole = {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "scripted",
            "responseId": new_id(""),
        }
        return whole, [SentEvent(whole, is_piece=True)]

    def error(self, fault: Fault) -> tuple[int, Mapping[str, Any]]:
        code, status, message = ERRORS[fault.kind]
        code = fault.status or code
        return code, {"error": {"code": code, "message": message, "status": status}}

    def error_event(self, fault: Fault) -> SentEvent:
        return SentEvent(self.error(fault)[1])
