"""Finds the files that git runs or obeys because the configuration of a repository, of a person or of the machine names
them.

It reads configuration as git does and follows all includes, whether or not their condition holds now. It runs nothing,
and reads only a few small files: their number and size are bounded, so that hostile configuration cannot make this
slow.

A setting that is not known to be harmless counts as a command, so that keys of future versions of git count too.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haft.files.gitconfig import Setting, first_line, settings
from haft.files.repositories import is_repository_top
from haft.lazy import regex
from haft.values import dataclass, field

_LONGEST: Final = 1000
_LONGEST_VALUE: Final = 16_000
_DEEPEST: Final = 20
_MAX_FILES: Final = 50
_MAX_WORDS: Final = 200

SYSTEM: Final = (
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
)
"""The paths at which git may look for the configuration of the machine; the build of git decides which one."""

_DIRECTORIES: Final = frozenset({"core.hookspath", "init.templatedir"})
"""Settings that name a directory with hooks in it."""
_HARMLESS: Final = frozenset({
    "advice", "author", "blame", "branch", "color", "column", "committer", "fetch", "gc", "http", "i18n", "mailmap",
    "notes", "pack", "pretty", "pull", "push", "safe", "url", "user",
})  # fmt: skip
"""Sections whose values are never run."""
_HARMLESS_KEYS: Final = frozenset({"commit.template", "core.excludesfile", "core.worktree", "init.defaultbranch"})
_OF_REMOTES: Final = frozenset({"receivepack", "uploadpack", "vcs"})
"""Settings of a remote that name a program."""
_ADDRESSES: Final = frozenset({"proxy", "pushurl", "url"})

_BREAKS: Final = regex(r"[\s;|&()<>{}\"'`,=]+")
_PUT_IN: Final = regex(r"^.*(?:\$\{?\w+\}?|[)}`])/(.+)$", re.DOTALL)
"""A path that begins with a variable or a substitution, usually for the top of the repository."""
_HELPER: Final = regex(r"[A-Za-z0-9+.-]+::")


@dataclass(slots=True)
class GitPaths:
    """The files that git runs or obeys, as paths relative to the workspace."""

    obeyed: list[str] = field(default_factory=list)
    """Files and directories that git obeys, with all below them: hooks, and included configuration."""
    run: dict[str, str] = field(default_factory=dict)
    """Files that a command in a setting names, each with the key of the setting."""


def git_paths_of(workspace: str, inside: str = "", everyone: Sequence[Setting] | None = None) -> GitPaths:
    """The files that git runs or obeys in the repository of the workspace; the workspace may be only a part of this
    repository. If `inside` is given, the same for the repository in this directory of the workspace. Pass the result of
    `shared_git_settings` as `everyone`, to read the shared settings only once."""
    top = os.path.join(workspace, inside) if inside else _top(workspace)
    found = GitPaths()
    hooks: dict[str, None] = {}
    settled: list[tuple[Setting, str]] = [
        (each, "") for each in (shared_git_settings() if everyone is None else everyone)
    ]
    for path, each in _read(_configuration(top)):
        settled.append((each, path))
    for each, path in settled:
        if is_include(each):
            found.obeyed += inside_of(workspace, os.path.dirname(path), each.value)
        elif each.key in _DIRECTORIES:
            hooks |= dict.fromkeys(inside_of(workspace, top, each.value))
        else:
            for word in named_by(each):
                for place in inside_of(workspace, top, word):
                    found.run.setdefault(place, each.key)
    found.obeyed = list(dict.fromkeys([*found.obeyed, *hooks]))
    return found


def shared_git_settings(env: Mapping[str, str] | None = None) -> list[Setting]:
    """The settings for every repository: those of the machine, of the person, and of the environment."""
    env = os.environ if env is None else env
    files = [] if env.get("GIT_CONFIG_NOSYSTEM") else list(SYSTEM)
    if "GIT_CONFIG_SYSTEM" in env:
        files = [env["GIT_CONFIG_SYSTEM"]]
    if "GIT_CONFIG_GLOBAL" in env:
        files.append(env["GIT_CONFIG_GLOBAL"])
    else:
        home = env.get("HOME", "")
        config = env.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")
        files += [os.path.join(config, "git", "config")] if config else []
        files += [os.path.join(home, ".gitconfig")] if home else []
    found = []
    for path, each in _read(files):
        if is_include(each):  # The path is relative to the file that contains it, which is known only here.
            place = os.path.join(os.path.dirname(path), os.path.expanduser(each.value))
            each = Setting(each.section, each.subsection, each.name, place)
        found.append(each)
    return [*found, *_of_environment(env)]


def _of_environment(env: Mapping[str, str]) -> Iterator[Setting]:
    count = env.get("GIT_CONFIG_COUNT", "")
    pairs = []
    if count.isdecimal():
        pairs = [
            (env.get(f"GIT_CONFIG_KEY_{number}", ""), env.get(f"GIT_CONFIG_VALUE_{number}", ""))
            for number in range(min(int(count), 1000))
        ]
    try:
        words = shlex.split(env.get("GIT_CONFIG_PARAMETERS", ""))
    except ValueError:
        words = []
    pairs += [(key, value) for key, _, value in (word.partition("=") for word in words)]
    for key, value in pairs:
        section, dot, rest = key.partition(".")
        subsection, _, name = rest.rpartition(".")
        if dot and name:
            yield Setting(section.lower(), subsection or None, name.lower(), value)


def is_include(setting: Setting) -> bool:
    """Whether a setting includes another configuration file."""
    return setting.section in ("include", "includeif") and setting.name == "path"


def _read(paths: Sequence[str] | Iterator[str]) -> Iterator[tuple[str, Setting]]:
    """Yield every setting in some files and in the files that they include: the path of the file, and the setting. Each
    file is read once."""
    waiting = list(paths)
    waiting.reverse()
    seen: set[str] = set()
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop()
        if "\0" in path or not os.path.exists(path):
            continue
        real = os.path.realpath(path)  # The person's configuration may be a link into a directory of dotfiles.
        if real in seen:
            continue
        seen.add(real)
        for each in settings(real):
            yield path, each
            if is_include(each) and each.value and "\0" not in each.value and len(each.value) < _LONGEST:
                waiting.append(os.path.join(os.path.dirname(path), os.path.expanduser(each.value)))


def named_by(setting: Setting) -> list[str]:
    """The words of a setting that may name files that git runs. In a command, these are the words with a slash, and all
    arguments. If the first word has no slash, this word is left out, because git looks for such a program on PATH."""
    value = (setting.subsection or "" if setting.section == "url" else setting.value).strip()
    if not value or _is_harmless(setting) or len(value) > _LONGEST_VALUE:
        return []
    line = _HELPER.sub("", value.removeprefix("!").strip(), count=1)
    try:
        quoted = shlex.split(line, comments=False)
    except ValueError:
        quoted = []
    broken = [word for word in _BREAKS.split(line) if word]
    words = [line, *quoted, *broken, *_after_cd(broken)]
    words += [found[1] for word in (*words,) if (found := _PUT_IN.match(word))]
    first = {each[0] for each in (quoted, broken) if each} | {line}
    return [
        word
        for word in list(dict.fromkeys(words))[:_MAX_WORDS]
        if not word.startswith("-") and ("/" in word or word not in first)
    ]


def _after_cd(words: Sequence[str]) -> Iterator[str]:
    """Yield each word after `cd DIR` as a path in the directory DIR."""
    place = ""
    for before, word in zip(["", *words], words, strict=False):
        if before == "cd":
            place = os.path.join(place, word)
        elif place and word != "cd":
            yield os.path.join(place, word)


def _is_harmless(setting: Setting) -> bool:
    section, name, value = setting.section, setting.name, setting.value
    if section == "url":
        return not _HELPER.match(setting.subsection or "")
    if section == "remote":
        return not (name in _OF_REMOTES or (name in _ADDRESSES and _HELPER.match(value)))
    if section == "submodule":
        return not (name == "update" and value.startswith("!"))
    if section == "alias":
        return not ("!" in value or "-c" in value or "--exec" in value)
    return section in _HARMLESS or (setting.subsection is None and f"{section}.{name}" in _HARMLESS_KEYS)


def _top(workspace: str) -> str:
    """The top directory of the repository that contains a workspace; the workspace itself if haft finds no
    repository."""
    here = workspace
    while not is_repository_top(here):
        above = os.path.dirname(here)
        if above == here or os.path.lexists(os.path.join(here, "HEAD")):
            return workspace
        here = above
    return here


def _configuration(top: str) -> Iterator[str]:
    """The configuration files of the repository in a directory, also if the repository is bare, or the directory is a
    worktree."""
    git = os.path.join(top, ".git")
    if not os.path.lexists(git) and os.path.lexists(os.path.join(top, "HEAD")):
        git = top
    named = first_line(git)
    if named.startswith("gitdir: ") and "\0" not in named:
        git = os.path.join(top, named.removeprefix("gitdir: ").rstrip())
    common = first_line(os.path.join(git, "commondir"))
    yield os.path.join(git, common if "\0" not in common else "", "config")
    yield os.path.join(git, "config.worktree")


def inside_of(workspace: str, base: str, named: str) -> list[str]:
    """The path that a setting names, and the same path with links resolved. Both are relative to the workspace. A path
    outside of the workspace is left out."""
    if not named or "\0" in named or len(named) >= _LONGEST:
        return []
    place = os.path.join(base, os.path.expanduser(named))
    found: list[str] = []
    for top, each in ((workspace, os.path.normpath(place)), (os.path.realpath(workspace), os.path.realpath(place))):
        inside = os.path.relpath(each, top)
        if each.startswith(top.rstrip("/") + "/") and inside.count("/") < _DEEPEST and inside not in found:
            found.append(inside)
    return found
