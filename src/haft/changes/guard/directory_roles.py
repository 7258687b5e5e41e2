"""The roles of the directories of a workspace. A directory may hold hooks or editor settings, be a part of a git
directory, or be nothing special. Its role decides what a call may write there. "Git obeys a file" means: the file
decides what git runs.

A git directory is recognized by its name, `.git`, or by its content: git obeys the files of any directory with `HEAD`,
`objects` and `refs`, whatever its name. Inside a `.git`, other protected names mean nothing: a branch may be called
`haft.toml`. Inside a git directory with another name they stay protected: otherwise a call could make a project's
directory a git directory, and then change the project's protected files.

If a change set makes a directory a git directory, this directory is `fresh`: the guard has never judged its content, so
all of its content is judged as if it were new.

Names are compared in the form that `folded` gives them, which ignores upper and lower case. Every directory is checked
once. The disk is read only for directories with a name that matters in a repository, and for directories above a
change, because a repository there may have its hooks in another directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from haft.changes.commit.manifest import PathChange
from haft.changes.guard.git_unfinished import AT_TOP, STEPS
from haft.changes.guard.protected_names import NAMED, Names, folded_path, is_area, why
from haft.changes.guard.resulting_tree import ResultingTree, When
from haft.files import NAMES, folded, git_paths_of, shared_git_settings, shown
from haft.values import dataclass, replace

Kind = Literal["plain", "closed", "area", "git", "worktree", "modules", "worktrees", "hooks", "steps", "inside"]
_STORES: Final = frozenset({"info", "logs", "objects", "refs"})
"""Directories of a git directory in which git, if a file is a link, writes to the link's target."""
PARTS: Final = frozenset({"branches", "hooks", "modules", "remotes", "worktrees"}) | STEPS | _STORES
"""Directories of a git directory that have a role of their own."""
MAKES: Final = frozenset({"commondir", "head", "objects", "refs"})
"""Names that make a directory a repository."""
TOP: Final = frozenset(NAMES)
_LONGEST_KEY: Final = 80


@dataclass(frozen=True, slots=True)
class DirectoryRole:
    """The role of one directory. Similar directories may share one object."""

    kind: Kind
    base: str = ""
    """The protected directory at or above this directory: of kind `closed`, or the git directory that this directory
    belongs to."""
    why: str = ""
    """For kind `closed`: why the directory is protected."""
    owner: str = ""
    """For kind `worktree`: the git directory of the main repository."""
    submodule: bool = False
    """Whether this is the git directory of a submodule, below `.git/modules`."""
    hidden: bool = False
    """Whether this directory is a `.git` or inside of one."""
    pending_names: Names | None = None
    """If this path is the beginning of protected names of several parts: their further parts."""
    fresh: bool = False
    """Whether this directory belongs to a git directory that the change set makes one."""


PLAIN: Final = DirectoryRole("plain")
INSIDE: Final = DirectoryRole("inside", hidden=True)


SIGNIFICANT_NAMES: Final = (
    frozenset(NAMED) | frozenset(AT_TOP) | PARTS | MAKES | {".git", ".gitmodules", "config", "config.worktree"}
)
MOST_EXISTING: Final = 5000
"""If a directory that becomes a repository holds more files than this, they are not judged, and the change is
refused."""


class DirectoryRoles:
    """The roles of all directories of a workspace, with the changes of one call."""

    def __init__(self, resulting_tree: ResultingTree, own: Iterable[str]) -> None:
        """`own` are further protected paths, such as haft's own code and toolboxes."""
        self._resulting_tree = resulting_tree
        self._kept = {folded_path(os.path.normpath(path)) for path in own}
        everyone = shared_git_settings()
        tops = dict.fromkeys(["", *resulting_tree.repositories()])
        places = [git_paths_of(resulting_tree.workspace, top, everyone) for top in tops]
        self._hooks = {folded_path(path) for each in places for path in each.obeyed}
        self._run = {folded_path(path): key for each in places for path, key in each.run.items()}
        self._own = self._kept | self._hooks
        self._leading = {above for path in (*self._own, *self._run) for above in _above(path)}
        self.significant_names = SIGNIFICANT_NAMES | {
            path.rpartition("/")[2] for path in (*self._own, *self._run, *self._leading)
        }
        """Names that can make a path in an ordinary directory protected. (Protected file name endings can, too.)"""
        self._known: dict[str, DirectoryRole] = {"": PLAIN}
        self._repositories: dict[tuple[str, When], bool] = {}
        self._makes: dict[tuple[str, str], PathChange] | None = None

    def of(self, directory: str) -> DirectoryRole:
        """The role of a directory. This works without recursion, because trees can be deeper than Python's stack."""
        missing: list[str] = []
        here = directory
        while (known := self._known.get(here)) is None:
            missing.append(here)
            here = here.rpartition("/")[0]
        role = known
        for here in reversed(missing):
            role = self._known[here] = self._below(role, here)
        return role

    def own(self, path: str) -> str | None:
        """Why a path is protected although its name is ordinary: it is one of the protected paths that the constructor
        got, or git's configuration names it as a place for hooks or configuration. None if neither is true."""
        if not self._own or (place := folded_path(path)) not in self._own:
            return None
        return "git runs or obeys what lies there" if place in self._hooks else "haft runs what lies there"

    def runs(self, path: str) -> str | None:
        """The reason why a file is protected, if a command in git's configuration names the file; otherwise None."""
        key = self._run.get(folded_path(path)) if self._run else None
        return (
            None if key is None else f"git runs it, or passes it to a program: `{shown(key)[:_LONGEST_KEY]}` names it"
        )

    def is_kept(self, path: str) -> bool:
        """Whether a call must not even remove the path, because the workspace itself uses it. Protected paths of nested
        repositories may be removed."""
        place = folded_path(path)
        return place in TOP or place in self._kept

    def leads_to_own(self, path: str) -> bool:
        return bool(self._leading) and folded_path(path) in self._leading

    def is_repository(self, directory: str, when: When = "after") -> bool:
        """Whether git treats the directory as a git directory, whatever its name. Only the names in the directory are
        checked, not the content of the files, because this content could change later without a check by the guard."""
        found = self._repositories.get((directory, when))
        if found is None:
            found = self._repositories[directory, when] = self._has(directory, "HEAD", when) and (
                (self._has(directory, "objects", when) and self._has(directory, "refs", when))
                or self._has(directory, "commondir", when)
            )
        return found

    def existing_in(self, directory: str) -> Iterator[PathChange | None]:
        """Files that were in a directory before it became a git directory, and that git may obey from then on. Yields
        None and stops if there are too many. Submodules in the directory are left out: they are repositories of their
        own."""
        waiting, count = [directory], 0
        while waiting:
            here = waiting.pop()
            for each in self._resulting_tree.existing_in(here, MOST_EXISTING + 1):
                count += 1
                if count > MOST_EXISTING:
                    yield None
                    return
                assert each.after is not None
                if each.after.kind != "directory":
                    yield each
                elif here != directory or folded(each.path.rpartition("/")[2]) in PARTS - {"modules"}:
                    waiting.append(each.path)

    def repository(self, directory: str, role: DirectoryRole) -> DirectoryRole | None:
        """The role of a directory as a git directory; None if the directory is not a git directory."""
        if role.kind in ("git", "worktree"):
            return role
        if role.kind in ("plain", "inside") and self.is_repository(directory):
            return DirectoryRole("git", directory, fresh=self._is_fresh(directory))
        return None

    def _is_fresh(self, directory: str) -> bool:
        return self.is_repository(directory) and not self.is_repository(directory, "before")

    def _below(self, above: DirectoryRole, path: str) -> DirectoryRole:
        directory, _, last = path.rpartition("/")
        name = folded(last)
        if above.kind in ("closed", "area", "hooks"):
            return above
        if (why_own := self.own(path)) is not None:
            return DirectoryRole("closed", path, why_own)
        if name == ".git":
            return DirectoryRole("git", path, hidden=True)
        if above.kind == "modules":
            if not self.is_repository(path):
                return above
            return DirectoryRole("git", path, submodule=True, hidden=True, fresh=self._is_fresh(path))
        if above.kind == "worktrees":
            return DirectoryRole("worktree", path, owner=above.base, hidden=True, fresh=self._is_fresh(path))
        if name in PARTS and (repository := self.repository(directory, above)) is not None:
            part = _part(repository, path, name)
            if part is not None:
                return part
        if above.hidden:
            return replace(INSIDE, fresh=True) if above.fresh else INSIDE
        return _named_below(above, path, name)

    def _has(self, directory: str, name: str, when: When) -> bool:
        path = f"{directory}/{name}" if directory else name
        if self._resulting_tree.folds() and (altered := self._spelled().get((directory, folded(name)))) is not None:
            path = altered.path
        return self._resulting_tree.kind(path, when) is not None

    def _spelled(self) -> dict[tuple[str, str], PathChange]:
        """The changed files whose folded name is in `MAKES`, by directory and folded name."""
        if self._makes is None:
            places = ((path.rpartition("/"), each) for path, each in self._resulting_tree.altered.items())
            found = (((words[0], folded(words[2])), each) for words, each in places)
            self._makes = {key: each for key, each in found if key[1] in MAKES}
        return self._makes


def remaining_names(above: DirectoryRole, name: str) -> Names | None:
    """The parts that may follow `name` in protected names, if `name` lies in a directory with the role `above`. Empty
    if `name` is the last part of a protected name, None if `name` is not a part of any protected name."""
    if above.hidden:
        return None
    if above.pending_names is not None and name in above.pending_names:
        return above.pending_names[name]
    return NAMED.get(name)


def _named_below(above: DirectoryRole, path: str, name: str) -> DirectoryRole:
    if is_area(name):
        return DirectoryRole("area", path)
    # An ordinary directory inside a part of a git directory has the role of that part.
    going_on = replace(above, pending_names=None) if above.kind in ("inside", "steps") else PLAIN
    rest = remaining_names(above, name)
    if rest is None:
        return going_on
    return replace(going_on, pending_names=rest) if rest else DirectoryRole("closed", path, why(path))


def _part(repository: DirectoryRole, path: str, name: str) -> DirectoryRole | None:
    """The role of a directory inside a git directory; None if it has no role of its own."""
    hidden, fresh = repository.hidden, repository.fresh
    if name == "hooks":
        return DirectoryRole("hooks", repository.base, fresh=fresh)
    if name in ("branches", "remotes"):
        return DirectoryRole("closed", path, "git takes addresses from it", fresh=fresh)
    if name in STEPS:
        return DirectoryRole("steps", path, hidden=hidden, fresh=fresh)
    if name in _STORES:
        return DirectoryRole("inside", path, hidden=hidden, fresh=fresh)
    if not hidden:
        return None  # Git directories in `modules` and `worktrees` are then recognized by their content.
    return DirectoryRole("modules" if name == "modules" else "worktrees", repository.base, hidden=True, fresh=fresh)


def _above(path: str) -> Iterable[str]:
    words = path.split("/")
    return ("/".join(words[:count]) for count in range(1, len(words)))
