"""The names of files in a workspace that later run on the host, or decide what runs there.

Two packages use them: `sandbox` makes such files read-only while a call runs, and `changes` checks the changes of a
call. Those packages know what the content of a git directory means; this module has only names, the ways in which a
file system may spell them, and the paths that git's configuration names.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from haft.files.git_paths import git_paths_of
from haft.lazy import regex

REASONS: Final = {
    "agents obey it": (
        ".agents", ".aider.conf.yml", ".amp", ".claude", ".claude.json", ".codex", ".config/amp", ".config/code/user",
        ".config/opencode", ".continue", ".copilot", ".cursor", ".gemini", ".github/hooks", ".kiro",
        ".mcp.json", ".opencode", ".roo", ".windsurf", "opencode.json",
        "opencode.jsonc",
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
"""The reasons for protection, each with its names: files that a program obeys although nobody told it to run them. Such
programs are an editor that opens the directory; a debugger, a shell or a version manager that enters it; `cargo
--version`, `yarn --help`, `npm view` (`.npmrc` names programs, and the servers that get secrets).

Not protected are files that belong to the work itself and run when a person runs the project: `package.json`,
`Makefile`, `pyproject.toml`, `conftest.py`, `build.rs`, `rust-toolchain.toml`, `.pnpmfile.cjs`; and files that a hook
runs which the person has installed: `.pre-commit-config.yaml`, `lefthook.yml`."""

NAMES: Final = tuple(sorted(name for names in REASONS.values() for name in names))

ENDINGS: Final = {".code-workspace": "editors run what it says"}
"""The suffixes of names that are protected, each with the reason."""
AREA: Final = regex(r"\.haft-\d+-[0-9a-f]{20}")
"""The directory that haft makes beside a workspace if the workspace is on another file system than the state home; no
call may write there."""

_UNSEEN: Final = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that case-insensitive file systems also ignore in names."""
_SHORT: Final = {"git~1": ".git", "gitmod~1": ".gitmodules"}


def folded(name: str) -> str:
    """A normal form of one name of a path: if some file system treats two names as the same name, both have the same
    normal form. It handles upper and lower case, invisible characters, characters that Windows drops at the end, and
    Windows' short names."""
    small = name.lower()
    if small.isascii() and not small.endswith((".", " ")) and "~" not in small and ":" not in small:
        return small
    plain = _UNSEEN.sub("", unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold()))
    plain = plain.partition(":")[0].rstrip(". ")
    return _SHORT.get(plain, plain)


def elsewhere(workspace: str, inside: str = "") -> list[str]:
    """The paths in the workspace that git's configuration names for hooks and further configuration. This reads the
    configuration of the machine, of the person, and of one repository: the repository in the directory `inside` if that
    is given, otherwise the repository that contains the workspace. Nested repositories are not read."""
    return git_paths_of(workspace, inside).obeyed
