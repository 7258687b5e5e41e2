"""Files that only a person may change, because they decide what haft, a hook or an agent does. An agent's own tools
must not edit some of them. Edits of the others need an answer from outside of the agent. Inside the workspace, haft's
list of protected paths does the same for calls that haft runs.

The paths depend on variables. An agent that has other variables than this process counts with both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from haft.connecting import AGENTS, connected_paths


def why_not_edited(files: Sequence[str], state_home: str, variables: Mapping[str, str]) -> str | None:
    """Why an agent's own tool may not edit one of these files; None if it may. `variables` are those of the agent."""
    directories = {os.path.realpath(state_home): "haft's state"}
    hooks = {}
    for env in _environments(variables):
        home = env.get("HOME") or os.path.expanduser("~")
        configuration = os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "haft")
        directories[os.path.realpath(configuration)] = "haft's configuration"
        for agent in AGENTS.values():
            if agent.hooks is not None:
                hooks[os.path.realpath(agent.hooks.user.resolve(env))] = agent.title
    for file in files:
        real = os.path.realpath(file)
        for directory, what in directories.items():
            if real == directory or real.startswith(directory + os.sep):
                return f"{file} is part of {what}, which only a person may change"
        if real in hooks:
            return f"{file} names the hooks of {hooks[real]}, which only a person may change"
    return None


def why_held(files: Sequence[str], state_home: str, variables: Mapping[str, str]) -> str | None:
    """Why an edit of one of these files must wait in the inbox, although the agent has a prompt of its own; None if its
    prompt is enough."""
    servers = {
        os.path.realpath(path): agent.title
        for env in _environments(variables)
        for agent in AGENTS.values()
        for path in agent.user_servers.paths(env)
    }
    connected = set(connected_paths(state_home))
    for file in files:
        real = os.path.realpath(file)
        if real in servers:
            return f"{servers[real]} starts the MCP servers that {file} names"
        if real in connected:
            return f"agents obey {file}, and `haft connect` has written into it"
    return None


def _environments(variables: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    yield os.environ
    yield {**os.environ, **variables}
