"""A type of sub-agent: what it is for, its system prompt, and the rights and limits that it asks for.

`builtin_types` has those of haft, `type_reader` reads those of people. A type only asks: a sub-agent never gets more
than the agent that starts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from haft.contracts import Provenance
from haft.values import dataclass, field

TaskIsolation = Literal["workspace", "layer"]
"""Where a sub-agent works: in the workspace, or in a layer of its own whose changes are held at the end."""

BUDGET_KEYS: Final = ("cycles", "tokens", "calls", "seconds", "depth", "children", "cost")
"""What a budget limits. Each is also a setting in `[subagents]`, which has the default."""


@dataclass(frozen=True, slots=True)
class AgentType:
    """What a person or haft says about one type of sub-agent."""

    name: str
    description: str
    """What the type is for, and when to use it. The model that starts a sub-agent chooses by it."""
    prompt: str = ""
    """The system prompt. Empty: the default prompt."""
    tools: tuple[str, ...] = ()
    """Names of tools, with `*` for any text. Empty: the tools of `explore`."""
    disallowed: tuple[str, ...] = ()
    """Tools that it never gets, in the same form."""
    model: str = ""
    """The name of a model. Empty: `subagents.model`."""
    budget: Mapping[str, float] = field(default_factory=dict)
    """Own limits, by the names in `BUDGET_KEYS`. The budget of the caller still counts."""
    temperature: float | None = None
    output_tokens: int | None = None
    output: Mapping[str, Any] | None = None
    """The JSON Schema of the result in its report; None if the report is only text."""
    isolation: TaskIsolation | None = None
    """None: `subagents.isolation`."""
    readonly: bool = False
    """Whether it may only make calls that change nothing."""
    restricted: bool = True
    """Whether its calls get no grant, no class of danger and no remembered answer."""
    provenance: Provenance = "user"
    origin: str = ""
    """The file with the type, or the source of the configuration; empty for a built-in type."""
    notes: tuple[str, ...] = ()
    """What haft ignores in the definition, or reads in another way than it is written."""


TypeState = Literal["ready", "untrusted", "broken", "hidden"]
"""`untrusted`: it is in the workspace, and nobody trusts it. `hidden`: an earlier type has the same name."""


@dataclass(frozen=True, slots=True)
class ListedType:
    """A type as it is listed: it can be used, or there is a reason why not."""

    name: str
    origin: str
    provenance: Provenance
    type: AgentType | None
    """None if the definition cannot be understood."""
    state: TypeState = "ready"
    problem: str | None = None
    """Why the type cannot be used, and what to do; None if it can."""

    @property
    def is_usable(self) -> bool:
        return self.type is not None and self.problem is None
