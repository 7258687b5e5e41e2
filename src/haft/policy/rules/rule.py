"""One rule, and where it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from haft.contracts import NO_GRANTS, Action, Grants, Isolation
from haft.policy.analysis.verdict import Danger
from haft.values import dataclass, field

RuleOrigin = Literal["workspace", "user", "remembered", "caller"]
Context = Literal["thread", "subagent"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
KEYS: Final = (
    "tool", "matches", "exactly", "action", "context", "to", "message", "grant", "dangers", "isolation", "match",
    "not_match",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Within one origin, the first rule that matches decides."""

    tool: str
    """A pattern for the names of tools, in which `*` matches anything."""
    action: Action
    matches: Mapping[str, Any] = field(default_factory=dict)
    """For each argument, the pattern that its value must match: a text in which `*` matches anything, a `/regex/`, a
    list of alternatives, a boolean or number, or a table for nested values. For an argument that is a command line, the
    pattern is matched against each simple command of the line."""
    exactly: Mapping[str, Any] | None = None
    """If set, the rule matches only calls with exactly these arguments, never a part of a command line. An argument
    that sets the deadline is ignored."""
    context: Context | None = None
    """If set, the rule is only for calls of the thread itself, or only for calls of a sub-agent."""
    to: str | None = None
    """The program that decides, if the action is `delegate`."""
    message: str | None = None
    """The text that the model gets, if the action is `reject`."""
    grant: Grants = NO_GRANTS
    """What the sandbox permits in addition for calls that run because of this rule."""
    dangers: tuple[Danger, ...] = ()
    """The classes of danger that this rule allows; commands with other dangers still need approval. If the action is
    `reject`, the rule rejects only commands of these classes."""
    isolation: Isolation | None = None
    """How calls that run because of this rule are isolated from other callers; None: as the setting says."""
    match: tuple[Any, ...] = ()
    not_match: tuple[Any, ...] = ()
    """Examples that the rule must not match: command lines, or tables of arguments. They are checked when the rule is
    loaded, as are those in `match`."""
    origin: RuleOrigin = "user"
    source: str = ""
    """The file and line of the rule: `haft.toml:12`."""
    pin: str | None = None
    """The digest of the only tool definition that the rule is for, if a person made the rule by an answer."""
    thread: str | None = None
    """The only thread that the rule is for, if a person made the rule by an answer for that thread."""
    by: str | None = None
    """Who made the rule by an answer."""
    caller: str | None = None
    """Who made the call that this answer approved."""

    @property
    def rejects_dangers(self) -> bool:
        """Whether the rule rejects classes of danger: both commands that have such a danger and commands that may have
        it."""
        return self.action == "reject" and bool(self.dangers)

    @property
    def only_grants(self) -> bool:
        """Whether the rule decides nothing, and only adds its grant to calls that are approved anyway: a person made it
        by an answer about a connection."""
        return self.origin == "remembered" and self.action == "ask"

    @property
    def words(self) -> str:
        """The rule in a few words, for reasons and the audit log."""
        if self.only_grants:
            hosts = ", ".join(self.grant.network) if isinstance(self.grant.network, tuple) else "the network"
            exactly = "" if self.exactly is None else f" with exactly {_json(self.exactly)}"
            return f"let approved calls of {self.tool}{exactly} connect to {hosts}"
        if self.exactly is not None:
            return f"{self.action} {self.tool} with exactly {_json(self.exactly)}"
        told = [f"{name} {_as_text(value)}" for name, value in self.matches.items()]
        if self.rejects_dangers:
            told.append(f"danger {_as_text(self.dangers if len(self.dangers) > 1 else self.dangers[0])}")
        where = f" where {' and '.join(told)}" if told else ""
        return f"{self.action} {self.tool}{where}"


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"is one of {', '.join(map(str, value))}"
    return f"is {value}"
