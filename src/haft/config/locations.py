"""The paths of configuration files. This is a separate module, so that a check whether such files exist loads no other
code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

WORKSPACE_FILES: Final = ("haft.toml", "haft.json")
VARIABLES: Final = "HAFT_"
OTHER_VARIABLES: Final = ("HAFT_HOME",)
"""Environment variables with the prefix `HAFT_` that are not settings."""


def user_file(env: Mapping[str, str]) -> str:
    """The path of the user's own configuration."""
    base = env.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "haft", "haft.toml")


def is_configured(workspace: str, env: Mapping[str, str]) -> bool:
    """Whether a workspace may have settings: a configuration file exists, or an environment variable begins with
    `HAFT_`."""
    if any(name.startswith(VARIABLES) and name not in OTHER_VARIABLES for name in env):
        return True
    places = [user_file(env), *(os.path.join(workspace, name) for name in WORKSPACE_FILES)]
    return any(map(os.path.lexists, places))


def config_signature(workspace: str, env: Mapping[str, str], state_home: str) -> tuple[object, ...]:
    """A value that changes when a configuration file, or the trust in one, may have changed."""
    places = [user_file(env), *(os.path.join(workspace, name) for name in WORKSPACE_FILES)]
    return tuple(map(_signature, [*places, os.path.join(state_home, "trust")]))


def _signature(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
