"""The server and its machine: the audit log, what doctor says, the store, who asks, workspaces, tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.given import Given, JsonObject

TokenName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class ExportGiven(Given):
    """Which entries of the audit log are wanted. Every filter that is given must match."""

    type: Annotated[str | None, Field(max_length=40)] = None
    run: Annotated[str | None, Field(max_length=40)] = None
    who: Annotated[str | None, Field(max_length=200)] = None
    tool: Annotated[str | None, Field(max_length=200)] = None
    text: Annotated[str | None, Field(min_length=1, max_length=1000)] = None


class AuditGiven(ExportGiven):
    """A page of the audit log."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    cursor: Annotated[int | None, Field(ge=1, le=1 << 53)] = None
    """Only entries with a number below this one: `next` of the page before."""


class VerifyGiven(Given):
    """How much of the audit log is checked."""

    since_checkpoint: bool = False


class TokenGiven(Given):
    """A new token."""

    name: TokenName
    kind: Literal["person", "agent"] = "agent"
    roles: Annotated[
        list[Literal["reader", "caller", "approver", "operator"]],
        Field(min_length=1, max_length=4, default_factory=lambda: ["caller"]),
    ]
    workspaces: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=1000, default_factory=list)]
    tools: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=1000, default_factory=list)]
    seconds: Annotated[float | None, Field(gt=0, le=1e9)] = None
    """How long it is good; null: until it is revoked."""


class TokenNamed(Given):
    """The token that the path names."""

    name: TokenName


class AuditPage(TypedDict):
    entries: list[JsonObject]
    next: int | None


class Verdict(TypedDict):
    intact: bool
    records: int
    head: str
    problem: str | None
    torn: list[int]
    interrupted: str | None
    since: int


class Check(TypedDict):
    check: str
    state: Literal["ok", "warn", "broken"]
    detail: str
    hint: str | None


class Checks(TypedDict):
    checks: list[Check]


class StoreAnswer(TypedDict):
    usage: JsonObject | None
    """null if nothing is kept yet."""


class WorkspaceFacts(TypedDict):
    name: str
    path: str


class Workspaces(TypedDict):
    workspaces: list[WorkspaceFacts]


class Me(TypedDict):
    name: str
    kind: Literal["person", "agent"]
    roles: list[str]
    workspaces: list[str]
    tools: list[str]
    expiresAt: str | None
    actions: list[str]
    """What the identity may do."""


class Token(TypedDict):
    name: str
    id: str
    createdAt: str
    by: str
    kind: Literal["person", "agent"]
    roles: list[str]
    workspaces: list[str]
    tools: list[str]
    expiresAt: str | None
    lastUsedAt: str | None


class TokenList(TypedDict):
    tokens: list[Token]


class NewToken(TypedDict):
    token: str
    """The token itself. It cannot be shown again."""
    stored: Token


class Revoked(TypedDict):
    revoked: str
