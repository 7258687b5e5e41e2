"""One rule, as it was written down and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from haft.contracts import NO_GRANTS, Action, Grants
from haft.policy.analysis.verdict import Danger
from haft.values import dataclass, field

RuleOrigin = Literal["workspace", "user", "remembered", "caller"]
Context = Literal["thread", "subagent"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
KEYS: Final = (
    "tool", "matches", "exactly", "action", "context", "to", "message", "grant", "dangers", "match", "not_match"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """First match wins, within one origin."""

    tool: str
    """A pattern of names: `*` is anything."""
    action: Action
    matches: Mapping[str, Any] = field(default_factory=dict)
    """By argument: a text in which `*` is anything, `/regex/`, a list (any of them), a boolean or number, a table for
    what is nested. An argument that is a command is held against each simple command of the line."""
    exactly: Mapping[str, Any] | None = None
    """All the arguments, and no others: the rule is then for this call alone, not for a part of it. The deadline that a
    call brings does not matter."""
    context: Context | None = None
    """Only for calls of a thread itself, or only for those of a sub-agent."""
    to: str | None = None
    """The program to ask, where the action is `delegate`."""
    message: str | None = None
    """Told to the model, where the action is `reject`."""
    grant: Grants = NO_GRANTS
    """What opens the sandbox for the calls that it allows."""
    dangers: tuple[Danger, ...] = ()
    """The dangerous classes that it allows, by name; the others ask all the same. Of a rule that rejects: those that it
    rejects, and nothing else."""
    match: tuple[Any, ...] = ()
    not_match: tuple[Any, ...] = ()
    """Examples: a command line, or arguments. Checked when the rule is loaded."""
    origin: RuleOrigin = "user"
    source: str = ""
    """Where it is written: `haft.toml:12`."""
    pin: str | None = None
    """The definition that it holds for, where it was made by an answer."""
    thread: str | None = None
    """The thread that it holds for, where it was made by an answer for that thread."""

    @property
    def rejects_dangers(self) -> bool:
        """Whether it rejects classes of danger: commands that fall into one, and those that may."""
        return self.action == "reject" and bool(self.dangers)

    @property
    def words(self) -> str:
        """The rule in a few words, for reasons and the audit log."""
        if self.exactly is not None:
            return f"{self.action} {self.tool} with exactly {json.dumps(dict(self.exactly), ensure_ascii=False)}"
        told = [f"{name} {_told(value)}" for name, value in self.matches.items()]
        if self.rejects_dangers:
            told.append(f"danger {_told(self.dangers if len(self.dangers) > 1 else self.dangers[0])}")
        where = f" where {' and '.join(told)}" if told else ""
        return f"{self.action} {self.tool}{where}"


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"is one of {', '.join(map(str, value))}"
    return f"is {value}"
