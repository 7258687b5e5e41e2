"""The types of sub-agents of a workspace, with its configuration and its trust. Reads no file before somebody asks for
the types."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from haft.agents import AgentType, AgentTypes, ChosenModel, TypeTables, chosen_model
from haft.config import trusted_agents, user_file
from haft.contracts import Provenance

if TYPE_CHECKING:
    from haft.config import Config

CALLER = "the caller"


def agent_types(
    workspace: str, state_home: str, config: Config | None, env: Mapping[str, str] = os.environ
) -> AgentTypes:
    """The types of a workspace. `config` is its configuration; None if there is none."""
    return AgentTypes(workspace, _tables(config, env), trusted_agents(state_home, workspace), env)


def model_of(agent: AgentType, config: Config | None) -> ChosenModel:
    """The model of a type."""
    if config is None:
        return chosen_model(agent.model, "", {})
    return chosen_model(agent.model, config.values["subagents.model"], config.values["subagents.models"])


def _tables(config: Config | None, env: Mapping[str, str]) -> Sequence[TypeTables]:
    if config is None:
        return ()
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
