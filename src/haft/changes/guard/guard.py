"""The check before a commit: changes that could run code later on this machine need approval.

The guard is called before every commit, whatever engine found the changes. It does not ask a person: it only returns
the offences, the changes that need approval. `directory_roles` knows the role of a directory, and `git_guard` judges
repositories. The guard must see the whole change set, and must run under the workspace lock: two calls together may
make a directory a repository. "Git obeys a file" means: the file decides what git runs.

- **At any depth.** Editors and agents obey the settings of any folder that a person opens. Git and direnv obey the
  settings of any directory that a person enters. A shell reads its files only in a home directory, but any directory
  may be a home directory.
- **Directories** are harmless by themselves: their content is in the change set too, and is judged path by path.
- **Removing** is an offence only for files that a person set up to protect the workspace: protected files at its top,
  the hooks and the configuration of its own repository, and the paths `own`. Protected files of nested repositories,
  submodules and vendored folders may be removed.
- **Times and owners** of protected files may change: they do not decide what runs.

The guard does not check ordinary code, which runs only when a person runs it, nor extended attributes except
capabilities.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from haft.changes.commit.attributes import CAPABILITIES, value_of
from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import PathChange
from haft.changes.guard.directory_roles import MAKES, PLAIN, DirectoryRole, DirectoryRoles, remaining_names
from haft.changes.guard.git_guard import GitGuard
from haft.changes.guard.offence import A_LINK, Offence, Read, is_directory_only, is_gone, is_link, is_same
from haft.changes.guard.protected_names import is_area, why
from haft.changes.guard.resulting_tree import ResultingTree
from haft.files import ENDINGS, folded, shown

__all__ = ["Offence", "Read", "is_granted", "offences"]

_ENDINGS: Final = tuple(ENDINGS)
_RAISED: Final = stat.S_ISUID | stat.S_ISGID


def offences(
    entries: Sequence[PathChange],
    read: Read,
    *,
    workspace: str,
    granted_paths: Sequence[str] = (),
    own: Sequence[str] = (),
) -> list[Offence]:
    """The offences: the paths of a change set whose changes could run code later on this machine. Paths that
    `granted_paths` cover are left out. `granted_paths` are write grants, relative to the workspace, and may be
    patterns. `own` are further protected paths: haft's code, toolboxes, and the paths that `haft.files.elsewhere`
    finds."""
    guard = _Guard(entries, read, os.path.normpath(workspace), own)
    grants = list(map(_grant_parts, granted_paths))
    found = (guard.offence(each) for each in entries)
    return [each for each in found if each is not None and not (each.grant and _is_granted(each.path, grants))]


def is_granted(path: str, grants: Sequence[str]) -> bool:
    """Whether one of the grants covers a path. In a grant, `*` matches any part of a name. A grant for a directory
    covers the directory and everything below it; a grant with `/**` at its end covers only the paths below the
    directory. A grant for the whole workspace covers no protected path."""
    return _is_granted(path, list(map(_grant_parts, grants)))


def _grant_parts(grant: str) -> list[str]:
    words = os.path.normpath(grant.removesuffix("/**")).split("/")
    return [*words, "*"] if grant.endswith("/**") else words


def _is_granted(path: str, grants: Sequence[Sequence[str]]) -> bool:
    parts = path.split("/")
    # Names are also compared as they are, because a name may contain `*` or `[`.
    return any(
        words[0] not in (".", "..", "")
        and len(words) <= len(parts)
        and all(word == part or fnmatchcase(part, word) for word, part in zip(words, parts, strict=False))
        for words in grants
    )


class _Guard:
    def __init__(self, entries: Sequence[PathChange], read: Read, workspace: str, own: Sequence[str]) -> None:
        resulting_tree = ResultingTree(workspace, entries, read)
        self._roles = DirectoryRoles(resulting_tree, own)
        self._git = GitGuard(resulting_tree, self._roles)
        self._significant_names = self._roles.significant_names
        self._checked_directories: set[str] = set()

    def offence(self, entry: PathChange) -> Offence | None:
        """The first offence of one path; None if the change is harmless. For most paths the name alone shows that the
        change is harmless."""
        after = entry.after
        if after is not None and (after.kind == "other" or (after.kind == "file" and _is_raised(after))):
            found = _special(entry)
            if found is not None:
                return found
        directory, _, last = entry.path.rpartition("/")
        role = self._roles.of(directory)
        name = folded(last)
        if (
            role is PLAIN
            and name not in self._significant_names
            and not name.endswith(_ENDINGS)
            and not name.startswith(".haft-")
            and (after is None or after.kind != "link" or self._roles.repository(directory, role) is None)
        ):
            return None
        return self._judge(entry, directory, name, role)

    def _judge(self, entry: PathChange, directory: str, name: str, role: DirectoryRole) -> Offence | None:
        if role.kind == "area" or (is_area(name) and not role.hidden):
            return Offence(entry.path, "haft keeps files there that it must not lose", None)
        repository = self._roles.repository(directory, role)
        if name in MAKES and repository and repository.fresh and (found := self._activated(entry, directory)):
            return found
        is_fresh = role.fresh or (repository is not None and repository.fresh)
        if is_fresh and entry.after is not None:
            entry = PathChange(entry.path, None, entry.after)  # Git begins to obey the file now, even if it is old.
        if is_directory_only(entry) or _is_unchanged(entry):
            return None
        return self._by_place(entry, name, role) or self._by_git(entry, directory, name, role, repository)

    def _activated(self, entry: PathChange, directory: str) -> Offence | None:
        """Judge the files in a directory that becomes a git directory by this change: nobody judged these files when
        they were written. (The files of a directory called `.git` are always judged.) Returns the offence, or None."""
        if directory in self._checked_directories:
            return None
        self._checked_directories.add(directory)
        for each in self._roles.existing_in(directory):
            if each is None:
                too_much = "it makes a repository of a directory that holds too many files to be judged"
                return Offence(entry.path, too_much, entry.path, activates=True)
            if self._is_obeyed(each):
                return Offence(entry.path, f"it makes git obey `{shown(each.path)}`", entry.path, activates=True)
        return None

    def _is_obeyed(self, entry: PathChange) -> bool:
        """Whether an existing file of a new git directory would be an offence if the file were new."""
        directory, _, last = entry.path.rpartition("/")
        role = self._roles.of(directory)
        name = folded(last)
        repository = self._roles.repository(directory, role)
        if role.fresh and role.kind in ("closed", "hooks"):
            return self._by_place(entry, name, role) is not None
        is_fresh = role.fresh or (repository is not None and repository.fresh)
        return is_fresh and self._by_git(entry, directory, name, role, repository) is not None

    def _by_place(self, entry: PathChange, name: str, role: DirectoryRole) -> Offence | None:
        path = entry.path
        if (why_own := self._roles.own(path)) is not None:
            return Offence(path, why_own, path) if self._roles.is_kept(path) or not is_gone(entry) else None
        if (why_run := self._roles.runs(path)) is not None and not is_gone(entry):
            return Offence(path, why_run, path)
        if is_link(entry) and self._roles.leads_to_own(path):
            return Offence(path, A_LINK, path)
        if role.kind == "closed":
            is_kept = self._roles.is_kept(role.base)
            return Offence(path, role.why, role.base) if is_kept or not is_gone(entry) else None
        if role.kind == "hooks":
            is_sample = name.endswith(".sample") and not is_link(entry)
            is_harmless = is_sample or (is_gone(entry) and folded(role.base) != ".git")
            return None if is_harmless else Offence(path, "git runs it as a hook", path)
        return self._by_name(entry, name, role)

    def _by_name(self, entry: PathChange, name: str, role: DirectoryRole) -> Offence | None:
        rest = remaining_names(role, name)
        ends = not role.hidden and name.endswith(_ENDINGS)
        if not ends and (rest is None or (rest and not is_link(entry))):
            return None
        if is_gone(entry) and not self._roles.is_kept(entry.path):
            return None
        return Offence(entry.path, A_LINK if is_link(entry) else why(entry.path), entry.path)

    def _by_git(
        self, entry: PathChange, directory: str, name: str, role: DirectoryRole, repository: DirectoryRole | None
    ) -> Offence | None:
        if name == ".git":
            return self._git.dot_git(entry, directory)
        if is_link(entry) and (role.hidden or repository is not None or role.kind in ("inside", "steps")):
            # Git itself makes no links in a git directory. If a log were a link, git would write to the link's target.
            return Offence(entry.path, A_LINK, entry.path)
        if role.kind == "steps":
            return self._git.steps(entry, name)
        if name == ".gitmodules" and not role.hidden:
            return self._git.modules(entry)
        return None if repository is None else self._git.in_repository(entry, name, repository)


def _special(entry: PathChange) -> Offence | None:
    before, after = entry.before, entry.after
    if after is None or after.kind == "other":
        is_device = after is not None and (stat.S_ISBLK(after.mode) or stat.S_ISCHR(after.mode))
        return Offence(entry.path, "it is a device", None) if is_device else None
    capabilities = value_of(after.attributes, CAPABILITIES)
    was = None if before is None else (before.mode & after.mode & _RAISED, before.uid, before.gid)
    had = capabilities if before is None or before.attributes is None else value_of(before.attributes, CAPABILITIES)
    if is_same(entry) and was == (after.mode & _RAISED, after.uid, after.gid) and capabilities in (None, had):
        return None
    if after.mode & _RAISED:
        return Offence(entry.path, "it would run with the rights of its owner or group", entry.path)
    return Offence(entry.path, "it would run with capabilities of its own", entry.path)


def _is_raised(after: Entry) -> bool:
    """Whether the file runs with more rights than the user who starts it."""
    return bool(after.mode & _RAISED or value_of(after.attributes, CAPABILITIES))


def _is_unchanged(entry: PathChange) -> bool:
    """Whether content and mode of the path are unchanged, so that only its times or its owner differ."""
    before, after = entry.before, entry.after
    return before is not None and after is not None and before.mode == after.mode and is_same(entry)
