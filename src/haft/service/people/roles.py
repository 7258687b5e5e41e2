"""Roles, and what each of them may do: one table. The reference page and the tests are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

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
Kind = Literal["person", "agent"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_READER: Final[frozenset[Action]] = frozenset(
    {"see-tools", "see-own-runs", "see-all-runs", "see-inbox", "see-rules", "see-audit", "see-machine"}
)
_CALLER: Final[frozenset[Action]] = frozenset({"see-tools", "call-tools", "see-own-runs", "cancel-own", "undo-own"})

ALLOWED: Final[Mapping[Role, frozenset[Action]]] = {
    "reader": _READER,
    "caller": _CALLER,
    "approver": _READER | {"answer", "cancel-own", "cancel-all", "undo-own", "undo-all"},
    "operator": frozenset(ACTIONS),
}
"""What each role may do. Somebody with several roles may do what any of them may."""

NEVER_FOR_AGENTS: Final[frozenset[Action]] = frozenset(
    {"answer", "undo-all", "write-rules", "manage-tokens", "manage-server"}
)
"""What an agent may not do, whatever its roles say: each of these could let the agent approve its own calls, or hide
them. A program that belongs to an agent on this machine may not do them either, whoever's token it has."""

NEVER_FOR_A_PART: Final[frozenset[Action]] = frozenset({"write-rules", "manage-tokens", "manage-server"})
"""What nobody may do whose token is only for some workspaces or tools, because it reaches further."""

MEANING: Final[Mapping[Action, str]] = {
    "see-tools": "list tools, and test what the rules say about a call",
    "call-tools": "call tools",
    "see-own-runs": "see its own runs",
    "see-all-runs": "see the runs of everyone",
    "cancel-own": "cancel its own runs",
    "cancel-all": "cancel the runs of everyone",
    "undo-own": "undo and redo its own runs",
    "undo-all": "undo and redo the runs of everyone; drop their held changes",
    "see-inbox": "see which calls wait for a person",
    "answer": "approve and reject calls; apply held changes",
    "see-rules": "see the rules",
    "write-rules": "add and remove rules",
    "see-audit": "read and verify the audit log",
    "see-machine": "see what `haft doctor` says",
    "manage-tokens": "make and revoke tokens, end sessions",
    "manage-server": "see what webhooks sent, and send it again",
}
"""Each action in words, for people."""


def refused_to_agents(role: Role) -> frozenset[Action]:
    """What this role may do and no agent may. An agent gets only roles for which this is empty."""
    return ALLOWED[role] & NEVER_FOR_AGENTS
