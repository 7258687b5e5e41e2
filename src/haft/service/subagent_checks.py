"""Checks whether sub-agents can work here: the package for models, the model, and the types."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from haft.config import load_config
from haft.service.agent_types import find_agent_types
from haft.service.checks import Check
from haft.storage import StateHome, default_home


def subagent_checks(home: StateHome, workspace: str | None, env: Mapping[str, str]) -> list[Check]:
    """What is missing for sub-agents; no check if they are switched off."""
    config = load_config(workspace, env, trust_home=default_home(env))
    if not config.values["subagents.enabled"]:
        return []
    if importlib.util.find_spec("pydantic_ai") is None:
        return [
            Check("sub-agents", "broken", "pydantic-ai is missing", "in a checkout of haft: pip install '.[agents]'")
        ]
    model = config.values["subagents.model"]
    found = [] if workspace is None else find_agent_types(workspace, home.path, config, env).listed()
    broken = [one for one in found if not one.is_usable and one.state != "hidden"]
    checks = [
        Check("sub-agents", "warn", f"the type `{one.name}` cannot be used: {one.problem}", "`haft agent check`")
        for one in broken
    ]
    if not model:
        return [Check("sub-agents", "warn", "no model", "set `subagents.model`"), *checks]
    return [Check("sub-agents", "ok", f"{model}, {len(found) - len(broken)} types"), *checks]
