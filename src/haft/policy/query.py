"""The input of a policy decision, and the steps that led to the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.contracts import NO_GRANTS, Action, DecidedPart, Decision, Grants, Rights, ToolSpec
from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class PolicyQuery:
    """The facts about one call that the decision about it depends on."""

    spec: ToolSpec
    arguments: Mapping[str, Any]
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    thread: str = ""
    subagent: bool = False
    """Whether a sub-agent makes the call."""
    rights: tuple[Rights, ...] = ()
    """What the call may do at most."""
    confined: bool = True
    """Whether a sandbox will confine the processes that the call starts."""
    grants: Grants = NO_GRANTS
    """The grants that the caller gives to this call."""
    trial: bool = False
    """Whether the caller wants a trial run."""
    who: str | None = None
    """Who makes the call; None: the remembered answers of all people count."""
    on_behalf: str | None = None
    """The person for whom the caller acts, if it is an agent."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was examined for a decision."""

    layer: str
    what: str
    """The thing that was examined: a rule in words, a part of a command line, or a setting."""
    outcome: str
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"layer": self.layer, "what": self.what, "outcome": self.outcome, "source": self.source}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision and the steps that led to it."""

    decision: Decision
    steps: tuple[Step, ...]

    @property
    def action(self) -> Action:
        return self.decision.action

    @property
    def layer(self) -> str:
        return self.decision.layer

    @property
    def rule(self) -> str:
        return self.decision.rule

    @property
    def source(self) -> str:
        return self.decision.source

    @property
    def reason(self) -> str:
        return self.decision.reason

    @property
    def parts(self) -> tuple[DecidedPart, ...]:
        return self.decision.parts
