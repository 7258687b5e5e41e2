"""What the calls of a sub-agent, or of a client that is offered only some tools, may do at most.

Rights only narrow. A call has the rights of every caller above it, and may do only what all of them permit. The policy
checks them before it looks at any rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from haft.contracts.confinement import NO_GRANTS
from haft.contracts.limits import Limits
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.contracts.tool import ToolSpec


@dataclass(frozen=True, slots=True)
class Rights:
    """The most that some calls may do."""

    holder: str
    """Whose rights these are, as a part of a sentence: ``the sub-agent `work` ``."""
    tools: frozenset[str] | None = None
    """The names of the tools that may be called; None: all of them."""
    readonly: bool = False
    """Whether only tools may be called that change nothing, and only commands that only read."""
    restricted: bool = False
    """Whether the calls get no grants, dangerous commands are rejected, and answers do not count that a person gave
    about calls of another thread."""
    binds_subagents_only: bool = False
    """Whether only the calls of sub-agents are bound, and not those of other tools below."""
    limits: tuple[tuple[str, float], ...] = ()
    """The highest values of some limits, by the names that they have in `Limits`."""

    def why_not(self, spec: ToolSpec) -> str | None:
        """Why this tool may not be called; None if it may."""
        if self.tools is not None and spec.name not in self.tools:
            return f"{self.holder} may not call `{spec.name}`"
        changes_something = not spec.effects.readonly and not spec.commands and not spec.delegates
        if self.readonly and changes_something:
            return f"{self.holder} may only read, and `{spec.name}` does not declare that it changes nothing"
        if self.restricted and spec.grants != NO_GRANTS:
            return f"{self.holder} gets no grants, and the process of `{spec.name}` has some"
        return None

    def to_json(self) -> dict[str, Any]:
        return {
            "holder": self.holder,
            "tools": None if self.tools is None else sorted(self.tools),
            "readonly": self.readonly,
            "restricted": self.restricted,
            "bindsSubagentsOnly": self.binds_subagents_only,
            "limits": dict(self.limits),
        }


def rights_from(facts: Mapping[str, Any]) -> Rights:
    """The rights that `to_json` gave these facts about."""
    tools = facts["tools"]
    return Rights(
        facts["holder"],
        None if tools is None else frozenset(tools),
        readonly=facts["readonly"],
        restricted=facts["restricted"],
        binds_subagents_only=facts["bindsSubagentsOnly"],
        limits=tuple(facts["limits"].items()),
    )


def as_rights(given: Rights | tuple[Rights, ...] | None) -> tuple[Rights, ...]:
    """The rights that the caller of a method gave: none, one or several."""
    return (given,) if isinstance(given, Rights) else given or ()


def limits_within(limits: Limits, rights: Iterable[Rights]) -> Limits:
    """These limits, lowered where the rights have lower ones."""
    lowest: dict[str, Any] = {}
    for each in rights:
        for name, most in each.limits:
            now = lowest.get(name, getattr(limits, name))
            lowest[name] = min(now, most) if now else most  # 0 means that there is no limit.
    return replace(limits, **lowest) if lowest else limits


def restricted_holder(rights: Iterable[Rights]) -> str | None:
    """Whose rights permit no grants; None if grants are permitted."""
    return next((each.holder for each in rights if each.restricted), None)
