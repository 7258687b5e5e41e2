"""Calls: what a client sends, and the outcome that it gets."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field

from haft.surfaces.http.api.types.given import Given

MOST_WAIT = 600.0
"""How many seconds one request may wait for the end of a call."""
JsonObject = dict[str, Any]


class CallGiven(Given):
    """One call of a tool."""

    tool: Annotated[str, Field(min_length=1, max_length=200)]
    args: Annotated[JsonObject, Field(default_factory=dict)]
    thread: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    timeout: Annotated[float | None, Field(gt=0)] = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    grants: JsonObject | None = None
    trial: bool = False
    wait: Annotated[float, Field(ge=0, le=MOST_WAIT)] = 60.0
    """How many seconds the request waits for the end of the call, at most."""


class Failure(TypedDict):
    code: str
    message: str
    hint: str | None
    retryable: bool


Status = Literal[
    "queued",
    "blocked-on-user",
    "in-progress",
    "done",
    "error",
    "rejected-by-user",
    "cancellation-requested",
    "cancelled",
]


class Outcome(TypedDict):
    """How a call ended; for a call that has not ended, as far as it is known."""

    run: str
    tool: str
    status: Status
    output: str
    stderr: str
    exitCode: int | None
    result: Any
    error: Failure | None
    truncated: bool
    outputBytes: int
    startedAt: str
    durationMs: int
    who: str
    thread: str
    parent: str | None
    cached: bool
    changes: JsonObject
    decision: JsonObject | None
    limits: JsonObject
    sandbox: JsonObject
    endedChildren: list[JsonObject]
    notes: list[str]
    content: list[JsonObject]
