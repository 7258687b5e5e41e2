"""The agents that haft knows, one module each."""

from __future__ import annotations

from typing import Final

from haft.connecting.agents.agent import Agent
from haft.connecting.agents.amp import AMP
from haft.connecting.agents.antigravity import ANTIGRAVITY
from haft.connecting.agents.claude_code import CLAUDE_CODE
from haft.connecting.agents.codex import CODEX
from haft.connecting.agents.cursor import CURSOR
from haft.connecting.agents.gemini import GEMINI
from haft.connecting.agents.opencode import OPENCODE
from haft.connecting.agents.vscode import VSCODE
from haft.contracts import BadUsage, near_miss

AGENTS: Final = {agent.id: agent for agent in (CLAUDE_CODE, CODEX, OPENCODE, GEMINI, ANTIGRAVITY, CURSOR, VSCODE, AMP)}
"""Every agent by its id, in the order in which haft lists them."""


def agent_named(name: str) -> Agent:
    """The agent with this id. Raises `BadUsage` if there is none."""
    found = AGENTS.get(name) or agent_of_program(name)
    if found is None:
        near = near_miss(name, AGENTS)
        hint = f"did you mean `{near}`?" if near else f"haft knows {', '.join(AGENTS)}"
        raise BadUsage(f"haft knows no agent `{name}`", hint=hint)
    return found


def agent_of_program(program: str) -> Agent | None:
    """The agent that a program belongs to, by the program's name; None if haft does not know it."""
    name = program.rpartition("/")[2]
    return next((agent for agent in AGENTS.values() if name in agent.executables), None)
