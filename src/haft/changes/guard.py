"""The wall at commit: what a call may not bring into a workspace unasked, since it would run later on the host.

Above it are those who commit, whatever engine found the changes; who is asked and what is granted is theirs. Below it
`grounds` says what a directory is and `gitguard` judges repositories. It must see the whole change set, and run under
the lock that commits hold: what makes a repository of a directory may come from two calls.

- **At any depth.** Editors and agents obey a folder wherever it is opened, git and direnv wherever one goes. A shell
  reads its files only at home, but any directory may be somebody's home, and guarding them costs nothing.
- **Directories** are harmless by themselves: what they hold is in the change set too, and is judged one by one.
- **Taking away** is an offence where it takes away a person's own safety: what is protected at the top of the
  workspace, the hooks and the configuration of its own repository, and what is `own`. Nested repositories, submodules
  and vendored folders come and go.
- **Times and owners** of protected files may change: nobody runs those.

It does not look at ordinary code, which runs when a person runs it, nor at extended attributes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from haft.changes.gitguard import GitGuard
from haft.changes.grounds import MAKES, TOP, Ground, Grounds, folded_path, named, why
from haft.changes.manifest import Altered
from haft.changes.offence import A_LINK, Offence, Read, is_directory_only, is_gone, is_link, is_same
from haft.files.protected import folded

__all__ = ["Offence", "Read", "is_spared", "offences"]

_RAISED: Final = stat.S_ISUID | stat.S_ISGID


def offences(
    entries: Sequence[Altered], read: Read, *, workspace: str, spared: Sequence[str] = (), own: Sequence[str] = ()
) -> list[Offence]:
    """Everything in a change set that would run later, but for what was `spared` by grants: relative to the workspace,
    as they were written. `own` is protected besides: haft's code, toolboxes, and what `elsewhere` names."""
    judge = _Judge(entries, read, os.path.normpath(workspace), own)
    grants = list(map(_words, spared))
    found = (judge.offence(each) for each in entries)
    return [each for each in found if each is not None and not (each.grant and _is_opened(each.path, grants))]


def is_spared(path: str, grants: Sequence[str]) -> bool:
    """`*` matches in names; a directory covers all below it, and `/**` only that. The workspace itself is no grant."""
    return _is_opened(path, list(map(_words, grants)))


def _words(grant: str) -> list[str]:
    words = os.path.normpath(grant.removesuffix("/**")).split("/")
    return [*words, "*"] if grant.endswith("/**") else words


def _is_opened(path: str, grants: Sequence[Sequence[str]]) -> bool:
    parts = path.split("/")
    # A name may itself hold what would be a pattern.
    return any(
        words[0] not in (".", "..", "")
        and len(words) <= len(parts)
        and all(word == part or fnmatchcase(part, word) for word, part in zip(words, parts, strict=False))
        for words in grants
    )


class _Judge:
    def __init__(self, entries: Sequence[Altered], read: Read, workspace: str, own: Sequence[str]) -> None:
        self._grounds = Grounds(workspace, entries, own)
        self._git = GitGuard(workspace, self._grounds, read)
        self._mattering = self._grounds.mattering

    def offence(self, entry: Altered) -> Offence | None:
        """The first thing that is wrong with one path. Most of any change set leaves after a look at its name."""
        after = entry.after
        if after is not None and (after.kind == "other" or (after.mode & _RAISED and after.kind == "file")):
            found = _special(entry)
            if found is not None:
                return found
        directory, _, last = entry.path.rpartition("/")
        ground = self._grounds.of(directory)
        name = folded(last)
        if ground.kind == "plain" and name not in self._mattering and ground.named is None:
            return None
        if name in MAKES and entry.before is None and (found := self._git.came_alive(entry, directory, ground)):
            return found
        if is_directory_only(entry) or _is_unchanged(entry):
            return None
        return self._of_its_place(entry, name, ground) or self._of_git(entry, directory, name, ground)

    def _of_its_place(self, entry: Altered, name: str, ground: Ground) -> Offence | None:
        path = entry.path
        if self._grounds.is_own(path):
            return Offence(path, "haft runs what lies there", path)
        if is_link(entry) and self._grounds.leads_to_own(path):
            return Offence(path, A_LINK, path)
        if ground.kind == "closed":
            is_kept = self._grounds.is_own(ground.base) or folded_path(ground.base) in TOP
            return Offence(path, ground.why, ground.base) if is_kept or not is_gone(entry) else None
        if ground.kind == "hooks":
            is_harmless = name.endswith(".sample") or (is_gone(entry) and folded(ground.base) != ".git")
            return None if is_harmless else Offence(path, "git runs it as a hook", path)
        return _by_name(entry, name, ground)

    def _of_git(self, entry: Altered, directory: str, name: str, ground: Ground) -> Offence | None:
        if name == ".git":
            return self._git.dot_git(entry, directory)
        if ground.kind == "steps":
            return self._git.steps(entry, name)
        if ground.kind in ("modules", "worktrees"):
            return Offence(entry.path, A_LINK, entry.path) if is_link(entry) else None
        if name == ".gitmodules" and not ground.hidden:
            return self._git.modules(entry)
        repository = self._grounds.repository(directory, ground)
        return None if repository is None else self._git.in_repository(entry, name, repository)


def _by_name(entry: Altered, name: str, ground: Ground) -> Offence | None:
    rest = named(ground, name)
    if rest is None or (rest and not is_link(entry)):
        return None
    if is_gone(entry) and folded_path(entry.path) not in TOP:
        return None
    return Offence(entry.path, A_LINK if is_link(entry) else why(entry.path), entry.path)


def _special(entry: Altered) -> Offence | None:
    before, after = entry.before, entry.after
    if after is None or after.kind == "other":
        is_device = after is not None and (stat.S_ISBLK(after.mode) or stat.S_ISCHR(after.mode))
        return Offence(entry.path, "it is a device", None) if is_device else None
    was = None if before is None else (before.mode & after.mode & _RAISED, before.uid, before.gid)
    if is_same(entry) and was == (after.mode & _RAISED, after.uid, after.gid):
        return None
    return Offence(entry.path, "it would run with the rights of its owner or group", entry.path)


def _is_unchanged(entry: Altered) -> bool:
    """Whether whoever obeys it finds the same: only its time, or whose it is, is new."""
    before, after = entry.before, entry.after
    return before is not None and after is not None and before.mode == after.mode and is_same(entry)
