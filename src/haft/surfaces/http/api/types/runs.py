"""Runs: filters, pages, and one run as it is stored."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from pydantic import Field

from haft.surfaces.http.api.types.calls import Outcome, Status
from haft.surfaces.http.api.types.given import Given

MOST_ON_A_PAGE = 200


class RunQuery(Given):
    """Which runs are listed. Every filter that is given must match."""

    tool: str | None = None
    status: Status | None = None
    who: str | None = None
    thread: str | None = None
    parent: str | None = None
    batch: str | None = None
    path: str | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_ON_A_PAGE)] = 50
    cursor: str | None = None
    """Where the page begins: `next` of the page before."""


class State(TypedDict):
    at: str
    status: Status


class Run(TypedDict):
    """A run as it is stored."""

    id: str
    tool: str
    status: Status
    who: str
    thread: str
    parent: str | None
    workspace: str
    arguments: dict[str, Any]
    cwd: str
    digest: str | None
    batch: str | None
    host: str
    startedAt: str
    endedAt: str | None
    states: list[State]
    outcome: Outcome


class RunPage(TypedDict):
    runs: list[Run]
    next: str | None
    """The cursor of the next page; null if this is the last one."""
