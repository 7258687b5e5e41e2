"""What is asked of policy, and the steps by which it came to its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haft.contracts import NO_GRANTS, Action, DecidedPart, Decision, Grants, ToolSpec
from haft.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """One call, as far as a decision depends on it."""

    spec: ToolSpec
    arguments: Mapping[str, Any]
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    thread: str = ""
    subagent: bool = False
    """Whether a sub-agent makes the call."""
    confined: bool = True
    """Whether a sandbox will stand around what it starts."""
    grants: Grants = NO_GRANTS
    """What the caller brings."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was looked at on the way to a decision."""

    layer: str
    what: str
    """A rule in words, a part of a command, a setting."""
    outcome: str
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"layer": self.layer, "what": self.what, "outcome": self.outcome, "source": self.source}


@dataclass(frozen=True, slots=True)
class Explained:
    """A decision and how it came about."""

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
