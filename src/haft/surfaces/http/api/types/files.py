"""Files: the history of one path, and who wrote each line."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from pydantic import Field

from haft.surfaces.http.api.types.given import Given
from haft.surfaces.http.api.types.runs import Run

MOST_EDITS = 100
Path = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^/\x00][^\x00]*$")]


class FileGiven(Given):
    """Which file."""

    path: Path
    """Relative to the workspace."""


class HistoryGiven(FileGiven):
    """Which file, and how many of its last changes."""

    limit: Annotated[int, Field(ge=1, le=MOST_EDITS)] = 50


class Edit(TypedDict):
    """One change of a path, by a run or by someone outside of haft."""

    run: Run | None
    """The run; null for a change outside of haft, and for a run that is no longer stored."""
    undoneBy: Run | None
    """The run that undid it."""
    state: str | None
    """`committed` or `undone`; null for a change outside of haft."""
    at: str | None
    """When it was committed."""
    after: str | None
    """For a change outside of haft: the last run before it."""
    before: str | None
    """For a change outside of haft: the first run after it; null if the file is like this now."""
    type: Literal["create", "modify", "delete"]
    added: int
    removed: int
    diff: str | None
    note: str | None


class FileHistory(TypedDict):
    path: str
    edits: list[Edit]
    """The newest first."""
    isWhole: bool
    """Whether these are all changes that haft knows."""


class Line(TypedDict):
    line: int
    source: Literal["run", "outside", "older", "unknown"]
    run: str | None
    who: str | None
    thread: str | None
    at: str | None
    appliedBy: str | None
    text: str


class Blame(TypedDict):
    path: str
    lines: list[Line]
