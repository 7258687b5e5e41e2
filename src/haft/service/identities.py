"""Who uses a server, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from haft.contracts import Principal
from haft.values import dataclass

Role = Literal["reader", "caller", "approver", "operator"]
Action = Literal[
    "see-tools",
    "call-tools",
    "see-own-runs",
    "see-all-runs",
    "cancel-own",
    "cancel-all",
    "undo-own",
    "undo-all",
    "see-inbox",
    "answer",
    "see-rules",
    "write-rules",
    "see-audit",
    "see-machine",
    "manage-tokens",
    "manage-server",
]
_SEEN: Final[frozenset[Action]] = frozenset(
    {"see-tools", "see-own-runs", "see-all-runs", "see-inbox", "see-rules", "see-audit", "see-machine"}
)
ALLOWED: Final[Mapping[Role, frozenset[Action]]] = MappingProxyType(
    {
        "reader": _SEEN,
        "caller": frozenset({"see-tools", "call-tools", "see-own-runs", "cancel-own", "undo-own"}),
        "approver": _SEEN | {"answer", "cancel-all", "undo-all", "cancel-own", "undo-own"},
        "operator": frozenset(get_args(Action)),
    }
)
NEVER_FOR_AGENTS: Final[frozenset[Action]] = frozenset(
    {"answer", "undo-all", "write-rules", "manage-tokens", "manage-server"}
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request."""

    name: str
    kind: Literal["person", "agent"]
    roles: frozenset[Role]
    key: str
    workspaces: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    expires_at: float | None = None

    def may(self, action: Action) -> bool:
        """Whether its roles and its kind allow this."""
        if self.kind == "agent" and action in NEVER_FOR_AGENTS:
            return False
        return any(action in ALLOWED[role] for role in self.roles)

    def may_enter(self, workspace: str) -> bool:
        """Whether it may enter the workspace with this name."""
        return not self.workspaces or workspace in self.workspaces

    def may_call(self, tool: str) -> bool:
        """Whether it may call the tool with this name."""
        return not self.tools or any(fnmatchcase(tool, each) for each in self.tools)

    def principal(self, thread: str | None = None) -> Principal:
        """Who acts in its calls."""
        return Principal(self.name, thread=thread, kind=self.kind)

    def owns(self, run: Any) -> bool:
        """Whether a run is its own."""
        return bool(run.who == self.name)
