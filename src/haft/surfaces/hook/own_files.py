"""Files that only a person may change, because they decide what haft or a hook does: an agent's own tools must not edit
them. Inside the workspace, haft's list of protected paths does the same for calls that haft runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from haft.connecting import AGENTS


def why_not_edited(files: Sequence[str], state_home: str, env: Mapping[str, str]) -> str | None:
    """Why an agent's own tool may not edit one of these files; None if it may."""
    configuration = os.path.join(env.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "haft")
    directories = {
        os.path.realpath(state_home): "haft's state",
        os.path.realpath(configuration): "haft's configuration",
    }
    hooks = {os.path.realpath(place): title for title, place in _hook_files(env)}
    for file in files:
        real = os.path.realpath(file)
        for directory, what in directories.items():
            if real == directory or real.startswith(directory + os.sep):
                return f"{file} is part of {what}, which only a person may change"
        if real in hooks:
            return f"{file} names the hooks of {hooks[real]}, which only a person may change"
    return None


def _hook_files(env: Mapping[str, str]) -> list[tuple[str, str]]:
    facts = ((agent.title, agent.hooks) for agent in AGENTS.values())
    return [(title, hooks.user.resolve(env)) for title, hooks in facts if hooks is not None]
