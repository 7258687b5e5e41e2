"""The ports of what answers left behind in a workspace: rules that were remembered, and tools as they were approved."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class KeptRule(NamedTuple):
    """A rule that an answer made, as it is kept."""

    number: int
    """Later ones have larger numbers; none is given twice."""
    thread: str | None
    """The one thread in which it holds, if it does not hold in all."""
    rule: dict[str, Any]
    pin: str | None
    who: str
    at: float


class RuleStore(Protocol):
    """The remembered rules. Any thread may use it."""

    def remember(self, workspace: str, rule: KeptRule) -> None:
        """Keep a rule under a new number. The same rule for the same thread is kept once: the new one stays."""
        ...

    def all(self, workspace: str) -> list[KeptRule]:
        """The latest first."""
        ...

    def forget(self, workspace: str, number: int) -> bool:
        """False where there was none of that number."""
        ...


class KeptPin(NamedTuple):
    """A tool as it was approved."""

    tool: str
    digest: str
    definition: dict[str, Any]


class PinStore(Protocol):
    """Approved definitions. Any thread may use it."""

    def of(self, workspace: str, tool: str) -> KeptPin | None: ...

    def holding(self, workspace: str, path: str) -> list[KeptPin]:
        """Those whose definition has a file of that path, and maybe others that mention it."""
        ...

    def hold(self, workspace: str, pin: KeptPin, who: str, at: float) -> str:
        """Keep a definition where none is kept; the digest of the one that is kept then."""
        ...

    def agree(self, workspace: str, pin: KeptPin, who: str, at: float) -> None:
        """Keep a definition in place of any other of that tool."""
        ...
