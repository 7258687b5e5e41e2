"""Who makes a request: a person or an agent, with roles. Every route decides by this value alone."""

from __future__ import annotations

import time
from typing import Any, Protocol

from haft.contracts import Principal, iso_time
from haft.policy import name_matches
from haft.service.people.roles import ALLOWED, NEVER_FOR_A_PART, NEVER_FOR_AGENTS, ROLES, Action, Kind, Role
from haft.values import dataclass, replace


class OwnedRun(Protocol):
    """A run, as far as its owner is concerned."""

    @property
    def who(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who has shown who they are."""

    name: str
    """Runs, answers and the audit log name them so. No two identities of a server have the same name."""
    kind: Kind
    roles: frozenset[Role]
    key: str
    """What idempotency keys, limits and threads are bound to, such as `token:ID`. It stays the same for as long as the
    token, or the person at the identity provider, does."""
    workspaces: tuple[str, ...] = ()
    """The names of the workspaces that they may enter; () for all."""
    tools: tuple[str, ...] = ()
    """Patterns for the names of the tools that they may call; () for all."""
    expires_at: float | None = None
    session: str | None = None
    """The session in which they signed in; None if each request brings the token."""
    used_by: str | None = None
    """The agent of this machine whose program sent the request with the token or session of a person, and why haft
    thinks so. The kind is then `agent`."""

    def may(self, action: Action) -> bool:
        """Whether a role allows the action. An agent may never do what would let it approve its own calls. Somebody
        who may enter only some workspaces, or call only some tools, may never do what reaches further."""
        if self.kind == "agent" and action in NEVER_FOR_AGENTS:
            return False
        if (self.workspaces or self.tools) and action in NEVER_FOR_A_PART:
            return False
        return any(action in ALLOWED[role] for role in self.roles)

    def may_enter(self, workspace: str) -> bool:
        """Whether they may see anything of a workspace."""
        return not self.workspaces or workspace in self.workspaces

    def may_call(self, tool: str) -> bool:
        """Whether they may call the tool with this name. The rules decide afterwards."""
        if not self.may("call-tools"):
            return False
        return not self.tools or any(name_matches(pattern, tool, "") for pattern in self.tools)

    def is_expired(self, now: float | None = None) -> bool:
        """Whether their token or session is too old."""
        return self.expires_at is not None and (time.time() if now is None else now) >= self.expires_at

    def when_used_by(self, agent: str) -> Identity:
        """The same, in a request that a program of an agent sent: it has the rights of an agent."""
        return replace(self, kind="agent", used_by=agent)

    def principal(self, thread: str | None = None) -> Principal:
        """Who acts in their calls and answers."""
        return Principal(self.name, thread=thread, kind=self.kind)

    def owns(self, run: OwnedRun) -> bool:
        """Whether a run is theirs."""
        return run.who == self.name

    def to_json(self) -> dict[str, Any]:
        """What they are told about themselves."""
        return {
            "name": self.name,
            "kind": self.kind,
            "roles": [role for role in ROLES if role in self.roles],
            "workspaces": list(self.workspaces),
            "tools": list(self.tools),
            "expiresAt": None if self.expires_at is None else iso_time(self.expires_at),
        }
