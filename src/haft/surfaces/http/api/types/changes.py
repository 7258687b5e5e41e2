"""Changes of runs: differences, undo and redo, held changes, the history of files."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.calls import Failure, Seconds, ThreadName
from haft.surfaces.http.api.types.given import Given, JsonObject, RunGiven, RunOrBatch

MOST_RUNS = 1000
Path = Annotated[str, Field(min_length=1, max_length=4096)]


class DiffGiven(RunGiven):
    """How the changes of a run are shown."""

    path: Path | None = None
    """Only the file at this path."""


class ReverseGiven(Given):
    """What an undo or a redo reverses."""

    runs: Annotated[list[RunOrBatch], Field(max_length=MOST_RUNS, default_factory=list)]
    """The runs or batches. For an undo, an empty list means the last run of whoever asks."""
    thread: ThreadName | None = None
    """For an undo: all runs of this thread."""
    force: bool = False
    plan: bool = False
    """Only say what would be done."""
    wait: Seconds = 60.0


class ApplyGiven(RunGiven):
    """Which held changes of a run are applied."""

    paths: Annotated[list[Path], Field(max_length=10_000, default_factory=list)]
    """Only the changes of these paths, and of everything below them. Empty: all."""
    wait: Seconds = 60.0


class DropGiven(RunGiven):
    """Whose held changes are dropped."""

    wait: Seconds = 60.0


class FileGiven(Given):
    """A file, by its path in the workspace."""

    path: Path


class ChangedFile(TypedDict):
    path: str
    type: str
    kind: str
    added: int
    removed: int
    diff: str | None
    note: str | None
    attributes: NotRequired[list[str]]
    modeBefore: NotRequired[str]
    modeAfter: NotRequired[str]
    before: NotRequired[str]
    after: NotRequired[str]
    pathBytes: NotRequired[str]


class Part(TypedDict):
    run: str
    state: str
    files: list[str]


class Diff(TypedDict):
    """The changes of a run."""

    run: str
    engine: str
    complete: bool
    reason: str | None
    state: str
    conflicts: list[JsonObject]
    files: list[ChangedFile]
    parts: NotRequired[list[Part]]


class Reversal(TypedDict):
    """What an undo or redo did, or would do. With conflicts, nothing was done."""

    runs: list[str]
    plan: list[JsonObject]
    conflicts: list[JsonObject]
    undo: str | None
    """The run that did it; null for a plan."""
    ended: bool
    error: Failure | None


class Settled(TypedDict):
    """What became of held changes."""

    run: str
    settledBy: str
    """The run that applied or dropped them."""
    ended: bool
    conflicts: list[JsonObject]
    error: Failure | None


class HeldRun(TypedDict):
    run: str
    workspace: str
    who: str
    thread: str
    parent: str | None
    engine: str
    files: int
    reason: str | None
    heldAt: str


class HeldRuns(TypedDict):
    runs: list[HeldRun]


class BlamedLine(TypedDict):
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
    lines: list[BlamedLine]
