"""Rules: what decides about calls, and changes of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from haft.surfaces.http.api.types.given import Given, JsonObject, NoArguments, Text, ToolName

Action = Literal["allow", "ask", "reject", "try", "delegate"]


class TestGiven(Given):
    """A call whose decision is wanted."""

    tool: ToolName
    args: NoArguments
    cwd: Text = "."
    thread: Annotated[str | None, Field(min_length=1, max_length=1000)] = None
    subagent: bool = False
    explain: bool = False
    """Also every step that led to the decision."""


Value = str | bool | int | float | list[str | bool | int | float]


class RuleTable(BaseModel):
    """A rule, as a table of `[[permissions]]` has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: Annotated[str, Field(min_length=1, max_length=200)]
    action: Action
    matches: dict[str, Value] | None = None
    context: Literal["thread", "subagent"] | None = None
    to: Text | None = None
    message: Text | None = None
    grant: dict[str, Value] | None = None
    dangers: list[str] | None = None
    isolation: Literal["snapshot", "serial"] | None = None


class AddRuleGiven(Given):
    """A new rule."""

    rule: RuleTable
    place: Literal["workspace", "user"] = "user"
    first: bool = True


class RemoveRuleGiven(Given):
    """Where a rule is written, as the list of rules says it."""

    source: Annotated[str, Field(min_length=1, max_length=4096)]


class ReplayGiven(Given):
    """Which past calls are decided again."""

    rules: Annotated[str | None, Field(max_length=60_000)] = None
    """A text of a haft.toml whose rules replace the user's. Without it, today's rules are compared with what was
    decided."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 500


RuleSource = Annotated[str, Field(min_length=1, max_length=4096)]
RuleText = Annotated[str, Field(min_length=1, max_length=20_000)]


class RuleNamed(Given):
    """Where a rule is written, as the list of rules says it."""

    source: RuleSource


class ReplayChangeGiven(Given):
    """A change of one rule, whose effect on past calls is wanted."""

    source: RuleSource | None = None
    """The rule that changes; null for a new first rule."""
    text: RuleText | None = None
    """The rule as TOML, as in a haft.toml; null: without this rule."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000


class WriteRuleGiven(Given):
    """A rule as TOML, and where it goes."""

    source: RuleSource | None = None
    """The rule that it replaces; null for a new rule before all others."""
    text: RuleText
    place: Literal["workspace", "user"] = "user"
    """For a new rule: whose haft.toml."""


class DecisionsGiven(Given):
    """How many past calls are counted."""

    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000


class RuleShown(TypedDict):
    source: str
    text: str
    """As TOML."""


class DecisionCount(TypedDict):
    file: str
    """The file of the rule, or `haft's own rules`."""
    rule: str
    action: Action
    """Before a person answered."""
    count: int


class DecisionCounts(TypedDict):
    lookedAt: int
    counts: list[DecisionCount]


class Step(TypedDict):
    layer: str
    what: str
    outcome: str
    source: str | None


class Decision(TypedDict):
    action: Action
    layer: str
    rule: str
    source: str
    reason: str
    parts: list[JsonObject]
    file: NotRequired[str]
    steps: NotRequired[list[Step]]


class Rules(TypedDict):
    rules: list[JsonObject]


class RuleChange(TypedDict):
    source: str
    file: str | None
    line: int | None
    rule: dict[str, Any] | None
    missing: str | None
    losesTrust: bool


class Flip(TypedDict):
    run: str
    tool: str
    args: JsonObject
    was: Action
    now: Action
    rule: str
    source: str
    reason: str


class Replay(TypedDict):
    lookedAt: int
    passedOver: int
    flips: list[Flip]
