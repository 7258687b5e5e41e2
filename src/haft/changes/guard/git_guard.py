"""Judges changes inside a repository: its configuration, pointers to other git directories, and unfinished operations.

The files of a git directory decide which programs nearly every git command runs, even `git status`. A call may change
them only as git itself does in everyday work. Objects are not checked: a commit can hold anything, and a person who
checks out a commit gets what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from haft.changes.commit.manifest import PathChange
from haft.changes.guard import git_index
from haft.changes.guard.directory_roles import DirectoryRole, DirectoryRoles
from haft.changes.guard.git_settings import is_free, is_free_in_modules, offending
from haft.changes.guard.git_unfinished import AT_TOP, IN_STEPS, is_free_option
from haft.changes.guard.offence import A_LINK, Offence, is_gone, is_link
from haft.changes.guard.resulting_tree import ResultingTree
from haft.files import Malformed, Setting, folded, parsed, shown
from haft.lazy import regex

MOST_BYTES: Final = 256 * 1024
"""The guard does not judge configuration files that are longer than this: it refuses them."""
_LONGEST_POINTER: Final = 4096
_LONGEST_KEY: Final = 80
_COMMAND: Final = regex(rb"^[ \t]*(?:exec|x)[ \t\r].*$", re.MULTILINE)
_TODO: Final = ("git-rebase-todo", "todo")
_OBEYED: Final = "git runs what it says"
_ELSEWHERE: Final = "it says whose hooks and settings git obeys"


class GitGuard:
    """The part of the guard that knows git."""

    def __init__(self, resulting_tree: ResultingTree, roles: DirectoryRoles) -> None:
        self._resulting_tree = resulting_tree
        self._roles = roles

    def dot_git(self, entry: PathChange, directory: str) -> Offence | None:
        """Judge a `.git` that is or was a file or a link. Such a file points to a git directory. At the top of the
        workspace it must not change. In other directories, it may point to where git itself keeps the git directories
        of submodules and worktrees. Returns the offence, or None."""
        after = entry.after
        is_fine = directory and (is_gone(entry) or (after and after.kind == "file" and self._is_kept(entry, directory)))
        return None if is_fine else Offence(entry.path, _ELSEWHERE, entry.path)

    def modules(self, entry: PathChange) -> Offence | None:
        """Judge a change of `.gitmodules`. Returns the offence, or None."""
        return None if is_gone(entry) else self._settings(entry, is_free_in_modules)

    def in_repository(self, entry: PathChange, name: str, role: DirectoryRole) -> Offence | None:
        """Judge the change of a file that lies directly in a git directory. Returns the offence, or None."""
        path = entry.path
        if name in ("config", "config.worktree"):
            if is_gone(entry):
                is_kept = name == "config" and folded(role.base) == ".git"
                return Offence(path, _OBEYED, path) if is_kept else None
            return self._settings(entry, lambda each: is_free(each) or self._is_own_tree(each, role))
        if name == "commondir" or (name == "gitdir" and role.kind == "worktree"):
            is_fine = is_gone(entry) or self._is_worktree(entry, name, role)
            return None if is_fine else Offence(path, _ELSEWHERE, path)
        if name == "index" or name.startswith("sharedindex."):
            return None if is_gone(entry) else self._index(entry)
        return self._left_half_done(entry, AT_TOP.get(name))

    def steps(self, entry: PathChange, name: str) -> Offence | None:
        """Judge a file of an unfinished operation, such as a rebase: when a person continues the operation, git runs
        the commands in the file. Returns the offence, or None."""
        if is_gone(entry):
            return None
        if name == "opts":
            return self._settings(entry, is_free_option)
        if name.startswith(_TODO):
            return self._todo(entry)
        return self._left_half_done(entry, IN_STEPS.get(name))

    def _index(self, entry: PathChange) -> Offence | None:
        content = self._resulting_tree.content(entry, "after", git_index.MOST_BYTES)
        if content is not None and git_index.is_sound(content):
            return None
        return Offence(entry.path, "git would write files to the paths it names, where no file belongs", entry.path)

    def _todo(self, entry: PathChange) -> Offence | None:
        content = self._resulting_tree.content(entry, "after", MOST_BYTES)
        if content is not None:
            known = _COMMAND.findall(self._resulting_tree.content(entry, "before", MOST_BYTES) or b"")
            if all(command in known for command in _COMMAND.findall(content)):
                return None
        return Offence(entry.path, "git runs the commands in it when the rebase continues", entry.path)

    def _left_half_done(self, entry: PathChange, is_fine: Callable[[str], bool] | None) -> Offence | None:
        if is_fine is None or is_gone(entry):
            return None
        content = self._resulting_tree.content(entry, "after", MOST_BYTES)
        if content is not None and is_fine(_text(content).removesuffix("\n")):
            return None
        return Offence(entry.path, "git obeys it when the unfinished operation continues", entry.path)

    def _is_kept(self, entry: PathChange, directory: str) -> bool:
        line = self._line(entry)
        if line is None or not line.startswith("gitdir: "):
            return False
        target = self._resulting_tree.resolve_inside(line.removeprefix("gitdir: "), directory)
        # A target that does not exist yet could become a link to anywhere.
        if target is None or self._resulting_tree.kind(target) != "directory":
            return False
        role = self._roles.of(target)
        return role.kind in ("modules", "worktree") or role.submodule

    def _is_worktree(self, entry: PathChange, name: str, role: DirectoryRole) -> bool:
        """Whether a pointer file in a worktree's git directory is as git writes it: `commondir` must name the main git
        directory, and `gitdir` must name the `.git` file of the worktree."""
        line = self._line(entry) if role.kind == "worktree" else None
        target = None if line is None else self._resulting_tree.resolve_inside(line, role.base)
        return target is not None and (target == role.owner if name == "commondir" else target.endswith("/.git"))

    def _is_own_tree(self, setting: Setting, role: DirectoryRole) -> bool:
        """Whether a setting in the configuration of a submodule says that its working tree is inside the workspace."""
        is_tree = setting.key == "core.worktree" and role.submodule
        return is_tree and bool(self._resulting_tree.resolve_inside(setting.value, role.base))

    def _settings(self, entry: PathChange, is_free: Callable[[Setting], bool]) -> Offence | None:
        path = entry.path
        content = self._resulting_tree.content(entry, "after", MOST_BYTES)
        if content is None:
            return Offence(path, A_LINK if is_link(entry) else f"{_OBEYED}, and it cannot be judged", path)
        try:
            after = list(parsed(_text(content)))
        except Malformed as error:
            return Offence(path, f"{_OBEYED}, and it cannot be judged: {error}", path)
        found = next(offending(self._settings_before(entry), after, is_free), None)
        return None if found is None else Offence(path, f"it sets `{shown(found.key)[:_LONGEST_KEY]}`", path)

    def _settings_before(self, entry: PathChange) -> list[Setting]:
        try:
            return list(parsed(_text(self._resulting_tree.content(entry, "before", MOST_BYTES) or b"")))
        except Malformed:
            return []

    def _line(self, entry: PathChange) -> str | None:
        """The single line of a file; None if the file is empty, has several lines or cannot be read."""
        content = self._resulting_tree.content(entry, "after", _LONGEST_POINTER)
        line = None if content is None else _text(content).rstrip("\r\n")
        return line if line and "\n" not in line and "\0" not in line else None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
