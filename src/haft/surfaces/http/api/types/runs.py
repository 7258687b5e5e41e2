"""Runs: filters, pages, one run as it is stored, its output."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.calls import Outcome, Status
from haft.surfaces.http.api.types.given import RUN_ID, Given, RunGiven, RunName

MOST_ON_A_PAGE = 200
Name = Annotated[str, Field(min_length=1, max_length=1000)]


class RunQuery(Given):
    """Which runs are listed. Every filter that is given must match."""

    tool: Name | None = None
    status: Status | None = None
    who: Name | None = None
    thread: Name | None = None
    parent: RunName | None = None
    batch: Name | None = None
    path: Annotated[str | None, Field(min_length=1, max_length=4096)] = None
    """Only runs that changed this file."""
    host: Name | None = None
    """Only runs that connected to this host; `*.example.org` means all names below it."""
    since: Annotated[float | None, Field(ge=0, le=1e11)] = None
    """Only runs that began at this time or later, in seconds since 1970."""
    until: Annotated[float | None, Field(ge=0, le=1e11)] = None
    """Only runs that began before this time."""
    longer_than: Annotated[float | None, Field(ge=0, le=1e9)] = None
    """Only runs that took more seconds than this."""
    text: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    """Only runs with this text in their arguments or their output, as far as it is shown."""
    open: bool | None = None
    """Only runs that have not ended, or only those that have."""
    limit: Annotated[int, Field(ge=1, le=MOST_ON_A_PAGE)] = 50
    cursor: Annotated[str | None, Field(pattern=RUN_ID)] = None
    """Where the page begins: `next` of the page before."""


class OutputGiven(RunGiven):
    """Which part of a run's output is wanted."""

    offset: Annotated[int | None, Field(ge=0, le=1 << 53)] = None
    """The byte at which the page begins."""
    first: Annotated[int | None, Field(ge=1, le=1 << 53)] = None
    """The first line, counted from 1."""
    last: Annotated[int | None, Field(ge=1, le=1 << 53)] = None
    """The last line."""
    grep: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    """Only lines with this text."""


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


class RunList(TypedDict):
    runs: list[Run]


class Output(TypedDict):
    run: str
    output: str
    next: int | None
    """Where the next page begins: a byte, or a line if lines were wanted; null if this is the last page."""
    bytes: int
    """The length of the whole output."""
