"""Connects haft to agents: what haft knows about each agent, and the changes to its configuration.

Surfaces call this package. It knows neither the service nor the hooks; the words that it writes into an agent's
configuration are given to it.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.config import connected_paths
    from haft.connecting.agent_versions import failures_that_pass, installed_version, needed_version, too_old_sentence
    from haft.connecting.agents import AGENTS, agent_named, agent_of_program
    from haft.connecting.agents.agent import Agent, Blocking, HookFacts, Place, Replacing, Rewriting, Scope
    from haft.connecting.changes import FileChange
    from haft.connecting.connections import Connections, Plan, Record
    from haft.connecting.entries import Choice, Entry, Launch, hook_line
    from haft.connecting.examination import Examined, Problem, examine, is_installed, present_token
    from haft.connecting.launcher import launcher_path
else:
    __getattr__ = face(
        __name__,
        {
            "agent_versions": "failures_that_pass installed_version needed_version too_old_sentence",
            "agents": "AGENTS agent_named agent_of_program",
            "agents.agent": "Agent Blocking HookFacts Place Replacing Rewriting Scope",
            "changes": "FileChange",
            "connections": "Connections Plan Record",
            "entries": "Choice Entry Launch hook_line",
            "haft.config": "connected_paths",
            "launcher": "launcher_path",
            "examination": "Examined Problem examine is_installed present_token",
        },
    )
