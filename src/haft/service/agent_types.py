"""The types of sub-agents of a workspace, with its configuration and its trust. Reads no file before somebody asks for
the types."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.agents import (
    BUDGET_KEYS,
    AgentType,
    AgentTypes,
    AllowedTools,
    ChosenModel,
    TypeTables,
    allowed_tools,
    chosen_model,
    system_prompt,
)
from haft.config import trusted_agents, user_file
from haft.contracts import Listing, Provenance
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.config import Config

CALLER: Final = "the caller"


@dataclass(frozen=True, slots=True)
class DescribedType:
    """What a sub-agent of a type would get, if a person started it in this workspace."""

    agent: AgentType
    tools: AllowedTools
    model: ChosenModel
    budget: Mapping[str, float]
    isolation: str
    temperature: float
    output_tokens: int
    prompt: str

    def to_json(self) -> dict[str, Any]:
        agent = self.agent
        return {
            "name": agent.name,
            "description": agent.description,
            "provenance": agent.provenance,
            "origin": agent.origin,
            "tools": list(self.tools.names),
            "leftOut": [{"name": name, "reason": reason} for name, reason in self.tools.left_out],
            "model": self.model.name,
            "modelNote": self.model.note,
            "limits": dict(self.budget),
            "isolation": self.isolation,
            "temperature": self.temperature,
            "outputTokens": self.output_tokens,
            "readonly": agent.readonly,
            "restricted": agent.restricted,
            "output": None if agent.output is None else dict(agent.output),
            "notes": list(agent.notes),
            "prompt": self.prompt,
            "hasOwnPrompt": bool(agent.prompt),
        }


def find_agent_types(
    workspace: str, state_home: str, config: Config, env: Mapping[str, str] = os.environ
) -> AgentTypes:
    """The types of a workspace."""
    return AgentTypes(workspace, _tables(config, env), lambda: trusted_agents(state_home, workspace), env)


def model_of(agent: AgentType, config: Config) -> ChosenModel:
    """The model of a type."""
    return chosen_model(agent.model, config.values["subagents.model"], config.values["subagents.models"])


def budget_of(agent: AgentType, config: Config) -> dict[str, float]:
    """The limits of a type: its own, else those of the settings. 0 as `cost` means no limit."""
    return {key: agent.budget.get(key, config.values[f"subagents.{key}"]) for key in BUDGET_KEYS}


def described_type(agent: AgentType, config: Config, listings: Sequence[Listing]) -> DescribedType:
    """What a sub-agent of a type would get. `listings` are the tools of the workspace."""
    values = config.values
    return DescribedType(
        agent,
        allowed_tools(agent, listings),
        model_of(agent, config),
        budget_of(agent, config),
        agent.isolation or values["subagents.isolation"],
        values["subagents.temperature"] if agent.temperature is None else agent.temperature,
        agent.output_tokens or values["subagents.output_tokens"],
        system_prompt(agent),
    )


def _tables(config: Config, env: Mapping[str, str]) -> Sequence[TypeTables]:
    counting = [TypeTables(source, _provenance(source, env), tables) for source, tables in config.agent_types]
    waiting = [
        TypeTables(one.source, "workspace", one.value, is_trusted=False)
        for one in config.ignored
        if one.name == "subagents.types" and isinstance(one.value, Mapping)
    ]
    return (*counting, *waiting)


def _provenance(source: str, env: Mapping[str, str]) -> Provenance:
    if source == CALLER:
        return "embedded"
    return "user" if source == user_file(env) else "workspace"
