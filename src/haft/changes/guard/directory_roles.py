"""What the directories of a workspace are, as far as it decides what may be put there: hooks, settings of an editor,
the inside of a repository, or nothing special.

A git directory is known by its name, `.git`, or by what it holds: git obeys any directory with a `HEAD`, `objects` and
`refs`, whatever it is called. Nobody works inside of a `.git`, so no other names count there: a branch may be called
`haft.toml`. In a git directory of another name they do, or one made around a project would open it.

A directory that becomes one by this change set is `fresh`: what is in it was never judged, and is judged as new.

Names are compared as `folded` does it. Every directory is looked at once; the disk is asked only about directories that
hold a name which would matter in a repository, and about those above what changed, since a repository there may have
its hooks elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from haft.changes.commit.manifest import PathChange
from haft.changes.guard.git_unfinished import AT_TOP, STEPS
from haft.changes.guard.protected_names import NAMED, Names, folded_path, is_area, why
from haft.changes.guard.resulting_tree import ResultingTree, When
from haft.files import NAMES, folded, of_everyone, places_of, shown
from haft.values import dataclass, replace

Kind = Literal["plain", "closed", "area", "git", "worktree", "modules", "worktrees", "hooks", "steps", "inside"]
_STORES: Final = frozenset({"info", "logs", "objects", "refs"})
"""Directories of a repository where git writes through links."""
PARTS: Final = frozenset({"branches", "hooks", "modules", "remotes", "worktrees"}) | STEPS | _STORES
"""Directories of a repository that matter."""
MAKES: Final = frozenset({"commondir", "head", "objects", "refs"})
"""What makes a directory a repository."""
TOP: Final = frozenset(NAMES)
_LONGEST_KEY: Final = 80


@dataclass(frozen=True, slots=True)
class DirectoryRole:
    """One directory, or several that are alike."""

    kind: Kind
    base: str = ""
    """What is protected: the closed directory, or the git directory that this one belongs to."""
    why: str = ""
    """Of closed ones."""
    owner: str = ""
    """Of worktrees: the git directory that they share."""
    submodule: bool = False
    """Whether a git directory lies where git keeps those of submodules."""
    hidden: bool = False
    """Whether it lies in a `.git`."""
    named: Names | None = None
    """Protected names that have begun above, and so may go on here."""
    fresh: bool = False
    """Whether it belongs to a git directory that is one only since this change set."""


PLAIN: Final = DirectoryRole("plain")
INSIDE: Final = DirectoryRole("inside", hidden=True)


SIGNIFICANT_NAMES: Final = (
    frozenset(NAMED) | frozenset(AT_TOP) | PARTS | MAKES | {".git", ".gitmodules", "config", "config.worktree"}
)
MOST_EXISTING: Final = 5000
"""What may lie in a directory that becomes a repository; more is not judged, and so not let pass."""


class DirectoryRoles:
    """The directories of a workspace, with the changes of one call in them."""

    def __init__(self, resulting_tree: ResultingTree, own: Iterable[str]) -> None:
        self._resulting_tree = resulting_tree
        self._kept = {folded_path(os.path.normpath(path)) for path in own}
        everyone = of_everyone()
        tops = dict.fromkeys(["", *resulting_tree.repositories()])
        places = [places_of(resulting_tree.workspace, top, everyone) for top in tops]
        self._hooks = {folded_path(path) for each in places for path in each.obeyed}
        self._run = {folded_path(path): key for each in places for path, key in each.run.items()}
        self._own = self._kept | self._hooks
        self._leading = {above for path in (*self._own, *self._run) for above in _above(path)}
        self.significant_names = SIGNIFICANT_NAMES | {
            path.rpartition("/")[2] for path in (*self._own, *self._run, *self._leading)
        }
        """Names that can matter in a plain directory, besides those that only end so."""
        self._known: dict[str, DirectoryRole] = {"": PLAIN}
        self._repositories: dict[tuple[str, When], bool] = {}
        self._makes: dict[tuple[str, str], PathChange] | None = None

    def of(self, directory: str) -> DirectoryRole:
        """By its path; without recursion, since trees can be deeper than Python's stack."""
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
        """Why something is protected although its name says nothing; None if it is not."""
        if not self._own or (place := folded_path(path)) not in self._own:
            return None
        return "git runs or obeys what lies there" if place in self._hooks else "haft runs what lies there"

    def runs(self, path: str) -> str | None:
        """Why a file is protected that a command of git's configuration names."""
        key = self._run.get(folded_path(path)) if self._run else None
        return (
            None if key is None else f"git runs it, or hands it to what it runs: `{shown(key)[:_LONGEST_KEY]}` names it"
        )

    def is_kept(self, path: str) -> bool:
        """Whether taking away what is there is an offence. Repositories in the workspace come and go."""
        place = folded_path(path)
        return place in TOP or place in self._kept

    def leads_to_own(self, path: str) -> bool:
        return bool(self._leading) and folded_path(path) in self._leading

    def is_repository(self, directory: str, when: When = "after") -> bool:
        """As git decides it for a directory of any name; whether what makes it one is as it should be does not count,
        since that can change unseen."""
        found = self._repositories.get((directory, when))
        if found is None:
            found = self._repositories[directory, when] = self._has(directory, "HEAD", when) and (
                (self._has(directory, "objects", when) and self._has(directory, "refs", when))
                or self._has(directory, "commondir", when)
            )
        return found

    def existing_in(self, directory: str) -> Iterator[PathChange | None]:
        """What was put into a directory before it became a repository, and is obeyed from then on; None where it is too
        much. Submodules in it are repositories of their own."""
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
        """The role as that of a git directory, if it is one."""
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
        """What makes repositories among the changes, however it is spelled."""
        if self._makes is None:
            places = ((path.rpartition("/"), each) for path, each in self._resulting_tree.altered.items())
            found = (((words[0], folded(words[2])), each) for words, each in places)
            self._makes = {key: each for key, each in found if key[1] in MAKES}
        return self._makes


def named(above: DirectoryRole, name: str) -> Names | None:
    """How protected names go on with this one; empty where one ends, None where it is part of none."""
    if above.hidden:
        return None
    if above.named is not None and name in above.named:
        return above.named[name]
    return NAMED.get(name)


def _named_below(above: DirectoryRole, path: str, name: str) -> DirectoryRole:
    if is_area(name):
        return DirectoryRole("area", path)
    # What lies in a repository whose name says nothing goes on being in it.
    going_on = replace(above, named=None) if above.kind in ("inside", "steps") else PLAIN
    rest = named(above, name)
    if rest is None:
        return going_on
    return replace(going_on, named=rest) if rest else DirectoryRole("closed", path, why(path))


def _part(repository: DirectoryRole, path: str, name: str) -> DirectoryRole | None:
    """What a directory in a git directory is; None for nothing special."""
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
        return None  # Repositories in there are known by what they hold.
    return DirectoryRole("modules" if name == "modules" else "worktrees", repository.base, hidden=True, fresh=fresh)


def _above(path: str) -> Iterable[str]:
    words = path.split("/")
    return ("/".join(words[:count]) for count in range(1, len(words)))
