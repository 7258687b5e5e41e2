"""What in a workspace would run later on the host, or decide what runs: a call may not write it unasked.

Only what exists can be held read-only while a call runs, and only at the top of the workspace and in its own
repository: looking further would cost as much as the workspace is large.
"""

from __future__ import annotations

import os
from typing import Final

NAMES: Final = (
    ".agents",
    ".amp",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".claude",
    ".codex",
    ".config/fish/config.fish",
    ".cursor",
    ".envrc",
    ".gemini",
    ".git/commondir",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks",
    ".gitconfig",
    ".gitmodules",
    ".idea",
    ".inputrc",
    ".mcp.json",
    ".profile",
    ".ripgreprc",
    ".vscode",
    ".zed",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "haft.json",
    "haft.lock",
    "haft.toml",
)

_MODULES: Final = ".git/modules"
_MOST_MODULES: Final = 200


def protected_names(workspace: str) -> list[str]:
    """Relative to the workspace, whether or not they exist."""
    names = list(NAMES)
    git = os.path.join(workspace, ".git")
    if os.path.isfile(git) and not os.path.islink(git):
        names.append(".git")  # It says where the repository is, and so whose hooks run.
    try:
        with os.scandir(os.path.join(workspace, _MODULES)) as found:
            for module in list(found)[:_MOST_MODULES]:
                names += [f"{_MODULES}/{module.name}/config", f"{_MODULES}/{module.name}/hooks"]
    except OSError:
        pass
    return names
