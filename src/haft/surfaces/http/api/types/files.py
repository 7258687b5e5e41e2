"""Files: the history of one path."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.changes import FileGiven
from haft.surfaces.http.api.types.runs import Run

MOST_EDITS = 100


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
