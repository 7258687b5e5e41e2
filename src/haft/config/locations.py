"""Where configuration stands. Apart from reading it: whoever only looks whether there is any pays for nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

WORKSPACE_FILES: Final = ("haft.toml", "haft.json")
VARIABLES: Final = "HAFT_"
OTHER_VARIABLES: Final = ("HAFT_HOME",)
"""Of ours, and no settings."""


def user_file(env: Mapping[str, str]) -> str:
    """Where the user's own configuration lies."""
    base = env.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "haft", "haft.toml")


def is_configured(workspace: str, env: Mapping[str, str]) -> bool:
    """Whether anything was configured for a workspace, by anyone."""
    if any(name.startswith(VARIABLES) and name not in OTHER_VARIABLES for name in env):
        return True
    places = [user_file(env), *(os.path.join(workspace, name) for name in WORKSPACE_FILES)]
    return any(map(os.path.lexists, places))
