"""Requests that wait for a person, and answers to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.changes import Path
from haft.surfaces.http.api.types.given import Given, JsonObject, RequestName, Text


class RequestGiven(Given):
    """The request that the path names: its id, the id of its run, or of its batch."""

    request: RequestName


class ApproveGiven(RequestGiven):
    """An approval."""

    scope: Literal["once", "thread", "always"] = "once"
    allow: Annotated[int, Field(ge=0, le=100)] = 0
    """Which of the offered rules a lasting answer makes, counted from 0."""
    args: JsonObject | None = None
    """Other arguments."""
    grants: JsonObject | None = None
    paths: Annotated[list[Path] | None, Field(max_length=10_000)] = None
    """For a trial run: only the changes of these paths."""
    digest: Annotated[str | None, Field(max_length=200)] = None
    """The digest of what was shown. If the request shows something else now, the answer is refused."""
    message: Text | None = None
    passphrase: Annotated[str | None, Field(max_length=1000)] = None


class RejectGiven(RequestGiven):
    """A rejection."""

    message: Text | None = None
    digest: Annotated[str | None, Field(max_length=200)] = None
    passphrase: Annotated[str | None, Field(max_length=1000)] = None


class Request(TypedDict, total=False):
    """A request, as `haft inbox --json` prints it."""

    id: str
    run: str
    digest: str
    tool: str
    args: JsonObject
    claim: str | None
    preview: str | None
    reason: str
    parts: list[JsonObject]
    sandbox: JsonObject
    withheld: list[str]
    diff: str | None
    output: str | None
    definitionDiff: str | None
    toAllow: list[JsonObject]
    build: str | None
    connection: JsonObject | None
    question: JsonObject | None
    batch: str | None
    who: str
    thread: str
    chain: list[str]
    purposes: list[str | None]
    createdAt: str
    expiresAt: str | None
    cwd: str
    env: JsonObject
    workspace: str


class Inbox(TypedDict):
    requests: list[Request]


class Answered(TypedDict, total=False):
    id: str
    run: str
    tool: str | None
    approved: bool
    waits: bool
    """Whether the host that asked lives, so that the call goes on."""
    paths: list[str]
    others: list[JsonObject]
