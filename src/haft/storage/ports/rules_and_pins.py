"""The ports (storage interfaces) of data that haft keeps after a person's answer: remembered rules, and the definitions
of approved tools."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class KeptRule(NamedTuple):
    """A rule that haft remembers because a person answered a request not only for one call, but also for later calls
    like it."""

    number: int
    """Later rules have larger numbers; no number is used twice."""
    thread: str | None
    """The only thread in which the rule holds; None if it holds in all."""
    rule: dict[str, Any]
    pin: str | None
    who: str
    at: float


class RuleStore(Protocol):
    """The remembered rules. Any thread of the process may use this object."""

    def remember(self, workspace: str, rule: KeptRule) -> None:
        """Store a rule with a new number, in place of an equal rule for the same thread."""
        ...

    def all(self, workspace: str) -> list[KeptRule]:
        """All rules of a workspace, newest first."""
        ...

    def forget(self, workspace: str, number: int) -> bool:
        """Remove a rule. Returns False if no rule has that number."""
        ...


class KeptPin(NamedTuple):
    """The definition of a tool as it was approved."""

    tool: str
    digest: str
    definition: dict[str, Any]


class PinStore(Protocol):
    """Approved definitions of tools. Any thread of the process may use this object."""

    def of(self, workspace: str, tool: str) -> KeptPin | None: ...

    def holding(self, workspace: str, path: str) -> list[KeptPin]:
        """The approved definitions that contain a file with this path. The result may also contain definitions that
        only mention the path."""
        ...

    def add_if_absent(self, workspace: str, pin: KeptPin, who: str, at: float) -> str:
        """Store a definition if the tool has none yet. Returns the digest of the definition that is stored now."""
        ...

    def approve(self, workspace: str, pin: KeptPin, who: str, at: float) -> None:
        """Store the approved definition of a tool, in place of the definition that was stored for this tool before."""
        ...
