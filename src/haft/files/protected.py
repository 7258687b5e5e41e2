"""What in a workspace would run later on the host, or decide what runs, by its name.

Two walls are built from it: `sandbox` holds what exists read-only while a call runs, `changes` judges what a call made.
What the content of a git directory means is for them; here are only names, how a filesystem may spell them, and the
places that the workspace's own repository names.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from haft.files.gitconfig import first_line, settings

REASONS: Final = {
    "agents obey it": (
        ".agents", ".aider.conf.yml", ".amp", ".claude", ".codex", ".continue", ".cursor", ".gemini", ".kiro",
        ".mcp.json", ".opencode", ".roo", ".windsurf", "opencode.json",
    ),
    "editors run what it says": (".fleet", ".idea", ".vscode", ".zed"),
    "shells run or obey it": (
        ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".config/fish/config.fish", ".cshrc", ".envrc",
        ".inputrc", ".profile", ".tcshrc", ".zlogin", ".zlogout", ".zprofile", ".zshenv", ".zshrc",
    ),
    "git runs what it says": (
        ".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".gitconfig", ".gitmodules",
    ),
    "version control runs what it says": (".hg/hgrc", ".jj/repo/config.toml"),
    "searches run what it says": (".ripgreprc",),
    "haft obeys it": ("haft.json", "haft.lock", "haft.toml"),
}  # fmt: skip
"""Why a name is protected, and those names."""

NAMES: Final = tuple(sorted(name for names in REASONS.values() for name in names))

_LONGEST: Final = 1000
_DEEPEST: Final = 20
_MOST_FILES: Final = 50
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that a filesystem which ignores case ignores too."""
_SHORT: Final = {"git~1": ".git", "gitmod~1": ".gitmodules"}


def folded(name: str) -> str:
    """One name of a path, so that names which some filesystem takes for the same are the same: letters of either case,
    invisible characters, what Windows drops at the end, and the short names that it gives."""
    small = name.lower()
    if small.isascii() and not small.endswith((".", " ")) and "~" not in small and ":" not in small:
        return small
    plain = _UNSEEN.sub("", unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold()))
    plain = plain.partition(":")[0].rstrip(". ")
    return _SHORT.get(plain, plain)


def elsewhere(workspace: str) -> list[str]:
    """Where in the workspace its repository says that hooks and further configuration are. What that configuration
    names is followed too; repositories nested in the workspace are not looked into."""
    found: list[str] = []
    waiting = list(_configuration(workspace))
    for path in waiting:
        hooks = ""
        for each in settings(path):
            if (each.section, each.subsection, each.name) == ("core", None, "hookspath"):
                hooks = each.value
            elif each.section in ("include", "includeif") and each.name == "path" and len(waiting) < _MOST_FILES:
                further = _inside(workspace, os.path.dirname(path), each.value)
                found += further
                waiting += [os.path.join(workspace, inside) for inside in further]
        found += _inside(workspace, workspace, hooks)
    return list(dict.fromkeys(found))


def _configuration(workspace: str) -> Iterator[str]:
    """Of the repository at the top of the workspace, also where it is a worktree of another."""
    git = os.path.join(workspace, ".git")
    named = first_line(git)
    if named.startswith("gitdir: ") and "\0" not in named:
        git = os.path.join(workspace, named.removeprefix("gitdir: ").rstrip())
    yield os.path.join(git, "config.worktree")
    common = first_line(os.path.join(git, "commondir"))
    yield os.path.join(git, common if "\0" not in common else "", "config")


def _inside(workspace: str, base: str, named: str) -> list[str]:
    """The place that a setting names, if it is in the workspace."""
    if named and "\0" not in named and len(named) < _LONGEST:
        place = os.path.normpath(os.path.join(base, os.path.expanduser(named)))
        inside = os.path.relpath(place, workspace)
        if place.startswith(workspace.rstrip("/") + "/") and inside.count("/") < _DEEPEST:
            return [inside]
    return []
