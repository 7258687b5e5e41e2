"""Errors as answers: problem details (RFC 9457) with haft's own codes. `STATUSES` is the only place that says which
code has which HTTP status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from haft.contracts import Busy, HaftError

if TYPE_CHECKING:
    from haft.service import Identity

MEDIA_TYPE: Final = "application/problem+json"
STATUSES: Final[Mapping[str, int]] = {
    "unknown-tool": 404,
    "unknown-run": 404,
    "unknown-request": 404,
    "unknown-workspace": 404,
    "not-found": 404,
    "invalid-arguments": 422,
    "invalid-request": 422,
    "bad-usage": 422,
    "key-reused": 422,
    "bad-json": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "foreign-page": 403,
    "sign-in-refused": 403,
    "rejected": 403,
    "method-not-allowed": 405,
    "sandbox-denied": 403,
    "tool-failed": 422,
    "limit-exceeded": 422,
    "not-covered": 422,
    "unknown-end": 422,
    "dependency-failed": 422,
    "cancelled": 409,
    "interrupted": 503,
    "timed-out": 504,
    "conflict": 409,
    "deadlock": 409,
    "key-in-use": 409,
    "too-large": 413,
    "unsupported-media-type": 415,
    "busy": 503,
    "too-many-requests": 429,
    "not-ready": 503,
    "bad-config": 500,
    "bad-approver": 500,
    "storage-failed": 503,
    "internal-error": 500,
}
"""The HTTP status of each code; all others have `USUAL_STATUS`."""
USUAL_STATUS: Final = 500
TITLES: Final[Mapping[int, str]] = {
    400: "The request is malformed",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "The request is wrong",
    429: "Too many requests",
    500: "haft failed",
    503: "Try again later",
    504: "Timed out",
}


class HttpError(HaftError):
    """An error that only requests over HTTP have. Its code is not that of an outcome."""

    def __init__(self, code: str, message: str, *, hint: str | None = None, retryable: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.http_code = code
        self.is_retryable = retryable
        self.headers: dict[str, str] = {}


class Forbidden(HttpError):
    """The identity may not do this."""

    def __init__(self, identity: Identity, action: str) -> None:
        roles = ", ".join(sorted(identity.roles)) or "no role"
        if identity.used_by is not None:
            super().__init__(
                "forbidden",
                f"only a person may do this (`{action}`), and the request came from the agent {identity.used_by}",
                hint="use a browser or terminal that the agent did not start",
            )
            return
        super().__init__(
            "forbidden",
            f"{identity.name} may not do this: it needs the right `{action}`, and {identity.name} has the role {roles}",
        )


class InvalidRequest(HttpError):
    """Parameters that do not fit the operation."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("invalid-request", "; ".join(problems))
        self.problems = tuple(problems)


def status_of(code: str) -> int:
    """The HTTP status of an error code."""
    return STATUSES.get(code, USUAL_STATUS)


def facts_of(error: HaftError, trace: str) -> dict[str, Any]:
    """The problem details of an error."""
    code = error.http_code if isinstance(error, HttpError) else error.code
    retryable = error.is_retryable if isinstance(error, HttpError) else error.retryable
    status = status_of(code)
    return {
        "type": f"urn:haft:error:{code}",
        "title": TITLES[status],
        "status": status,
        "detail": error.message,
        "code": code,
        "hint": error.hint,
        "retryable": retryable,
        "trace": trace,
    }


def problem(error: HaftError, trace: str) -> Response:
    """The answer for an error."""
    facts = facts_of(error, trace)
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if isinstance(error, Busy):
        headers.setdefault("retry-after", "1")
    return Response(json.dumps(facts), facts["status"], headers, media_type=MEDIA_TYPE)
