"""The plugins that haft writes for agents whose hooks are programs of the agent's own kind. Such a plugin does what the
hook line does for other agents: it starts haft's hook before and after each tool, and obeys its answer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Final

from haft.connecting.agents.agent import Agent

_FILES: Final = {"opencode": "opencode.js"}


def plugin_text(agent: Agent, hook: Sequence[str], env: Mapping[str, str], limit_seconds: int) -> str:
    """The text of the plugin for one agent."""
    with open(os.path.join(os.path.dirname(__file__), _FILES[agent.id]), encoding="utf-8") as file:
        text = file.read()
    words = {
        "COMMAND": json.dumps([*hook, agent.id], ensure_ascii=False),
        "ENVIRONMENT": json.dumps(dict(env), ensure_ascii=False),
        "SECONDS": str(limit_seconds),
    }
    for name, value in words.items():
        text = text.replace(f'"{name}"', value, 1)
    return text
