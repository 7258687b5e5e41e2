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
    "editors run what it says": (
        ".config/nvim", ".devcontainer", ".devcontainer.json", ".dir-locals-2.el", ".dir-locals.el", ".emacs",
        ".emacs.d", ".exrc", ".fleet", ".gvimrc", ".idea", ".lvimrc", ".nvim.lua", ".nvimrc", ".vimrc", ".vscode",
        ".zed",
    ),
    "debuggers run what it says": (".gdbinit", ".lldbinit", ".pdbrc"),
    "shells run or obey it": (
        ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".config/fish", ".cshrc", ".direnv",
        ".envrc", ".inputrc", ".kshrc", ".login", ".profile", ".tcshrc", ".zlogin", ".zlogout", ".zprofile", ".zshenv",
        ".zshrc",
    ),
    "it says which programs run under other names": (
        ".config/mise", ".config/mise.toml", ".mise", ".mise.local.toml", ".mise.toml", ".tool-versions",
        "mise.local.toml", "mise.toml",
    ),
    "package managers run what it says": (
        ".cargo/config", ".cargo/config.toml", ".npmrc", ".yarn/plugins", ".yarn/releases", ".yarnrc", ".yarnrc.yml",
    ),
    "git runs what it says": (
        ".config/git", ".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".gitconfig",
        ".gitmodules",
    ),
    "version control runs what it says": (
        ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".jj/repo/config.toml", ".sl/config",
    ),
    "ssh obeys it": (".ssh",),
    "searches run what it says": (".ripgreprc",),
    "haft obeys it": ("haft.json", "haft.lock", "haft.toml"),
}  # fmt: skip
"""Why a name is protected, and those names: what a program obeys by itself, without being told to run that file. An
editor that opens the folder, a debugger, a shell or a version manager that enters it, `cargo --version`, `yarn --help`,
`npm view` (`.npmrc` names programs, and where secrets are sent to).

Free stays what is the work itself and runs when a person runs the project: `package.json`, `Makefile`,
`pyproject.toml`, `conftest.py`, `build.rs`, `rust-toolchain.toml`, `.pnpmfile.cjs`; and what a hook that the person has
installed is there to run: `.pre-commit-config.yaml`, `lefthook.yml`."""

NAMES: Final = tuple(sorted(name for names in REASONS.values() for name in names))

ENDINGS: Final = {".code-workspace": "editors run what it says"}
"""Files that are protected by how their names end."""
AREA: Final = re.compile(r"\.haft-\d+-[0-9a-f]{20}")
"""What haft keeps beside a workspace that lies on another filesystem than its state: no call writes there."""

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


def elsewhere(workspace: str, inside: str = "") -> list[str]:
    """Where in the workspace its repository says that hooks and further configuration are, also where the workspace is
    only a part of it; or the repository of a directory `inside`. What that configuration names is followed too;
    repositories nested in there are not looked into."""
    top = os.path.join(workspace, inside) if inside else _top(workspace)
    found: list[str] = []
    waiting = list(_configuration(top))
    for path in waiting:
        hooks = ""
        for each in settings(path):
            if (each.section, each.subsection, each.name) == ("core", None, "hookspath"):
                hooks = each.value
            elif each.section in ("include", "includeif") and each.name == "path" and len(waiting) < _MOST_FILES:
                further = _inside(workspace, os.path.dirname(path), each.value)
                found += further
                waiting += [os.path.join(workspace, inside) for inside in further]
        found += _inside(workspace, top, hooks)
    return list(dict.fromkeys(found))


def _top(workspace: str) -> str:
    """Where git would find the repository of a workspace."""
    here = workspace
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here or os.path.lexists(os.path.join(here, "HEAD")):
            return workspace
        here = above
    return here


def _configuration(top: str) -> Iterator[str]:
    """Of the repository at the top of a directory, also where it is a worktree of another, or bare."""
    git = os.path.join(top, ".git")
    if not os.path.lexists(git) and os.path.lexists(os.path.join(top, "HEAD")):
        git = top
    named = first_line(git)
    if named.startswith("gitdir: ") and "\0" not in named:
        git = os.path.join(top, named.removeprefix("gitdir: ").rstrip())
    yield os.path.join(git, "config.worktree")
    common = first_line(os.path.join(git, "commondir"))
    yield os.path.join(git, common if "\0" not in common else "", "config")


def _inside(workspace: str, base: str, named: str) -> list[str]:
    """The place that a setting names, and the one that links make of it, if they are in the workspace."""
    if not named or "\0" in named or len(named) >= _LONGEST:
        return []
    place = os.path.join(base, os.path.expanduser(named))
    found: list[str] = []
    for top, each in ((workspace, os.path.normpath(place)), (os.path.realpath(workspace), os.path.realpath(place))):
        inside = os.path.relpath(each, top)
        if each.startswith(top.rstrip("/") + "/") and inside.count("/") < _DEEPEST and inside not in found:
            found.append(inside)
    return found
