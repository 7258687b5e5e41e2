"""Who acts: a person, an agent, or a sub-agent that an agent started.

Only the embedding program or a surface makes a principal. Every call, answer, undo, redo, apply, drop and cancel has a
principal, and the audit log names it. haft does not verify who the principal is: it trusts the program that uses the
service.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from haft.contracts.errors import BadUsage, NeedsPerson
from haft.contracts.names import ThreadId
from haft.values import dataclass, replace

PrincipalKind = Literal["person", "agent", "sub-agent"]
_KINDS: Final[tuple[str, ...]] = get_args(PrincipalKind)
"""The kinds of principals, those with the most rights first."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts, and in which conversation."""

    who: str
    thread: ThreadId | str | None = None
    """The thread in which the principal acts; None for the thread of the service."""
    kind: PrincipalKind = "person"
    on_behalf: str | None = None
    """The name of the person for whom an agent acts, if one person stands behind all that it does."""

    def __post_init__(self) -> None:
        check_text("who", self.who)
        check_text("thread", self.thread)
        if not self.who:
            raise BadUsage("`who` must not be empty")
        if self.kind not in _KINDS:
            raise BadUsage(f"a principal is a person, an agent or a sub-agent, not {self.kind!r}")

    def acting(self, who: str | Principal | None, thread: str | None = None) -> Principal:
        """The principal for an action of `who` in a service that this principal opened. If `who` is a text, it is a
        name, and the result has the same kind as this principal. If `who` is a principal, the result never has more
        rights than this principal."""
        acts = replace(self, who=who) if isinstance(who, str) else self if who is None else who
        if not isinstance(acts, Principal):
            raise BadUsage(f"`who` must be a name or a Principal, not {who!r}")
        kind = max(acts.kind, self.kind, key=_KINDS.index)
        behalf = acts.on_behalf or (self.on_behalf if acts.who == self.who else None)
        return replace(acts, kind=kind, thread=thread or acts.thread or self.thread, on_behalf=behalf)

    def must_be_person(self, verb: str) -> None:
        """Raise `NeedsPerson` if this principal is an agent or a sub-agent."""
        if self.kind != "person":
            raise NeedsPerson(verb, self.who, self.kind)

    def to_json(self) -> dict[str, Any]:
        """The fields that the audit log records about this principal."""
        told = {"who": self.who, "whoKind": self.kind, "thread": self.thread}
        return told if self.on_behalf is None else {**told, "onBehalf": self.on_behalf}


def check_text(word: str, value: Any) -> None:
    """Raise `BadUsage` if a name is not a text, or cannot be encoded as UTF-8."""
    if value is None:
        return
    try:
        value.encode()
    except (AttributeError, UnicodeEncodeError):
        raise BadUsage(f"`{word}` must be text, not {value!r}") from None
