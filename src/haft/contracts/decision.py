"""The answer to "may this happen", with everything needed to explain it later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.walls import NO_GRANTS, OPEN_WALLS, Grants, Profile, Walls

Action = Literal["allow", "ask", "reject", "try"]
DecidedBy = Literal["rule", "person", "nobody"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call, by whom, and under which rule."""

    action: Action
    layer: str
    """The layer that decided: `built-in` (haft's own rules) or `approval` (a person, or nobody to ask)."""
    rule: str
    """The rule in words."""
    source: str
    """Where the rule is written."""
    by: DecidedBy
    reason: str
    parts: tuple[Any, ...] = ()
    profile: Profile = "workspace"
    """The walls it may run in, where it runs behind any."""
    neutral: bool = False
    """Whether nobody looked at it: see `Walls.neutral`."""
    grants: Grants = NO_GRANTS

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "layer": self.layer,
            "rule": self.rule,
            "source": self.source,
            "by": self.by,
            "reason": self.reason,
            "parts": list(self.parts),
        }


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked: the whole call, as it would run."""

    run: RunId
    tool: ToolName
    description: str
    arguments: Mapping[str, Any]
    reason: str
    who: str
    thread: ThreadId
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the caller adds to the tool's environment."""
    timeout: float | None = None
    walls: Walls = OPEN_WALLS
    """What will confine it; the answer may add grants."""
    diff: str | None = None
    """What it changed, where it was tried and waits to be committed."""
    output: str | None = None
    """What it printed, where it was tried."""


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """What a person answers. Edited arguments are validated and decided again."""

    approved: bool
    message: str | None = None
    """Told to the model where the answer is no; the reason in the record either way."""
    arguments: Mapping[str, Any] | None = None
    grants: Grants | Mapping[str, Any] = NO_GRANTS
    """What opens walls for this call, beyond what was asked for."""


Approver = Callable[[ApprovalRequest], "Awaitable[bool | ApprovalAnswer] | bool | ApprovalAnswer"]
"""Whoever can be asked: a prompt at a terminal, a dialogue of the embedding program. A plain function will do where it
answers at once; one that waits must be asynchronous, or everything waits with it."""
