"""The environment of a tool: built from a short list, never inherited.

What is not checked here: the values. A PATH entry is kept when it is absolute and outside the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

PASSED = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def built_environment(host: Mapping[str, str], workspace: str) -> dict[str, str]:
    """What every tool gets: the few variables that programs cannot do without."""
    env = {name: host[name] for name in PASSED if name in host}
    env.update({name: value for name, value in host.items() if name.startswith("LC_")})
    env["PATH"] = safe_path(host.get("PATH", DEFAULT_PATH), workspace)
    return env


def safe_path(path: str, workspace: str) -> str:
    """PATH without relative entries (they would name the workspace) and without entries inside the workspace."""
    inside = workspace.rstrip("/") + "/"
    kept = [
        entry
        for entry in path.split(os.pathsep)
        if os.path.isabs(entry) and not (os.path.normpath(entry) + "/").startswith(inside)
    ]
    return os.pathsep.join(kept) or DEFAULT_PATH
