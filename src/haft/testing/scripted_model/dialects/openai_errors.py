"""The errors of OpenAI's two APIs, which differ only in how they word an overflow of the context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.testing.scripted_model.steps import Fault, FaultKind

ERRORS: dict[FaultKind, tuple[int, str, str | None, str]] = {
    "rate-limited": (
        429,
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached for scripted. Please try again later.",
    ),
    "server-error": (
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    "overloaded": (
        503,
        "server_error",
        "server_is_overloaded",
        "The engine is currently overloaded, please try again later.",
    ),
    "unauthorized": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: scripted."),
    "context-overflow": (400, "invalid_request_error", "context_length_exceeded", ""),
    "invalid-request": (400, "invalid_request_error", None, "The request is invalid."),
    "unknown-model": (404, "invalid_request_error", "model_not_found", "The model `scripted` does not exist."),
}


def error_body(fault: Fault, *, overflow: str, overflown: str) -> tuple[int, Mapping[str, Any]]:
    """The status and the body of a failed request. `overflow` is what the API says to one that is too long, and
    `overflown` the field that it names then."""
    status, kind, code, message = ERRORS[fault.kind]
    is_overflow = fault.kind == "context-overflow"
    error = {
        "message": overflow if is_overflow else message,
        "type": kind,
        "param": overflown if is_overflow else None,
        "code": code,
    }
    return fault.status or status, {"error": error}
