"""What in a workspace would run later on the host, or decide what runs, by its name.

Two packages use it: `sandbox` holds what exists read-only while a call runs, `changes` judges what a call made.
What the content of a git directory means is for them; here are only names, how a filesystem may spell them, and the
places that git's configuration names.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from haft.files.gitplaces import places_of
from haft.lazy import regex

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
        ".gitmodules", ".husky",
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
AREA: Final = regex(r"\.haft-\d+-[0-9a-f]{20}")
"""What haft keeps beside a workspace that lies on another filesystem than its state: no call writes there."""

_UNSEEN: Final = regex(
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
    """Where in the workspace git is told that hooks and further configuration are: by its repository, also where the
    workspace is only a part of it, or by that of a directory `inside`; by the person and by the machine. Repositories
    nested in there are not looked into."""
    return places_of(workspace, inside).obeyed
