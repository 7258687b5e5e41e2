"""Calls and batches: what a client sends, and the outcome that it gets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.given import BatchName, Given, JsonObject, NoArguments, RunName, Text, ToolName

MOST_WAIT = 600.0
"""How many seconds one request may wait for the end of a call."""
MOST_CALLS = 1000
"""How many calls a batch may have."""
Seconds = Annotated[float, Field(ge=0, le=MOST_WAIT)]
ThreadName = Annotated[str, Field(min_length=1, max_length=1000)]
Isolation = Literal["snapshot", "serial"]


class HowGiven(Given):
    """How calls run, for one call and for a batch."""

    thread: ThreadName | None = None
    timeout: Annotated[float | None, Field(gt=0, le=1_000_000)] = None
    cwd: Text | None = None
    env: dict[str, str] | None = None
    config: JsonObject | None = None
    grants: JsonObject | None = None
    isolation: Isolation | None = None
    uses_cache: bool = True
    wait: Seconds = 60.0
    """How many seconds the request waits for the end, at most. 0: it does not wait."""


class CallGiven(HowGiven):
    """One call of a tool."""

    tool: ToolName
    args: NoArguments
    trial: bool = False
    claim: Text | None = None
    """Why the caller makes this call, in its own words. A person who approves the call sees it."""
    pauses: bool = False
    """Whether the call waits for an answer without an end, also if the server restarts meanwhile."""
    run_id: RunName | None = None
    """The id of the run, if the client has made it, so that it knows the run before the answer comes: `r_`, 11
    hexadecimal digits for the time of now in milliseconds, and 13 random ones."""
    parent: Annotated[str | None, Field(pattern=r"^r_[0-9a-f]{24}$")] = None


class BatchCall(Given):
    """One call of a batch."""

    tool: ToolName
    args: NoArguments
    id: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    after: list[Annotated[str, Field(max_length=200)]] | None = None
    timeout: Annotated[float | None, Field(gt=0, le=1_000_000)] = None

    def to_call(self) -> JsonObject:
        """As `ToolService.batch` takes it."""
        return self.model_dump(exclude_none=True)


class BatchGiven(HowGiven):
    """Several calls at once."""

    calls: Annotated[list[BatchCall], Field(min_length=1, max_length=MOST_CALLS)]
    run_ids: Annotated[list[RunName] | None, Field(min_length=1, max_length=MOST_CALLS)] = None
    """The ids of the runs, one for each call, if the client has made them."""


class BatchPlanGiven(Given):
    """Calls of a batch whose order is wanted."""

    calls: Annotated[list[BatchCall], Field(min_length=1, max_length=MOST_CALLS)]
    thread: ThreadName | None = None
    cwd: Text | None = None


class BatchNamed(Given):
    """The batch that the path names."""

    batch: BatchName


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


class BatchOutcome(Outcome):
    """The outcome of one call of a batch."""

    id: str


class BatchAnswer(TypedDict):
    """The outcomes of a batch in the order of its calls; of calls that have not ended, as far as they are known."""

    batch: str
    ended: bool
    outcomes: list[BatchOutcome]


class BatchRuns(TypedDict):
    batch: str
    ended: bool
    outcomes: list[Outcome]


class WaitsFor(TypedDict):
    id: str
    reason: str


class PlannedCall(TypedDict):
    id: str
    tool: str
    group: int
    waitsFor: list[WaitsFor]
    problem: str | None


class BatchPlan(TypedDict):
    groups: list[list[str]]
    calls: list[PlannedCall]


class Cancelled(TypedDict):
    run: str
    cancelled: bool
    """False if it had already ended."""
