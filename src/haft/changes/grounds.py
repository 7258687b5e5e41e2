"""What the directories of a workspace are, as far as it decides what may be put there: hooks, settings of an editor,
the inside of a repository, or nothing special.

A git directory is known by its name, `.git`, or by what it holds: git obeys any directory with a `HEAD`, `objects` and
`refs`, whatever it is called. Nobody works inside of a `.git`, so no other names count there: a branch may be called
`haft.toml`. In a git directory of another name they do, or one made around a project would open it.

Names are compared as `folded` does it. Every directory is looked at once; the disk is asked only about directories that
hold a name which would matter in a repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from haft.changes.manifest import Altered
from haft.files.protected import NAMES, REASONS, folded

Kind = Literal["plain", "closed", "git", "worktree", "modules", "worktrees", "hooks", "steps", "inside"]
When = Literal["before", "after"]
Names = Mapping[str, "Names"]
"""Protected names, one part of the path inside the other; empty where a name ends."""

PARTS: Final = frozenset({"branches", "hooks", "modules", "rebase-merge", "remotes", "sequencer", "worktrees"})
"""Directories of a repository that matter."""
MAKES: Final = frozenset({"commondir", "head", "objects", "refs"})
"""What makes a directory a repository."""
TOP: Final = frozenset(NAMES)


@dataclass(frozen=True, slots=True)
class Ground:
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


PLAIN: Final = Ground("plain")
INSIDE: Final = Ground("inside", hidden=True)


def _tree(names: Iterable[str]) -> Names:
    root: dict[str, dict[str, object]] = {}
    for name in names:
        place: dict[str, dict[str, object]] = root
        for word in name.split("/"):
            place = place.setdefault(word, {})  # type: ignore[assignment]  # a tree has no type of its own
    return root  # type: ignore[return-value]  # the same


_NAMED: Final = _tree(name for name in NAMES if not name.startswith(".git/") and name != ".gitmodules")
_WHY: Final = {name.split("/")[0]: why for why, names in REASONS.items() for name in names}
MATTERING: Final = frozenset(_NAMED) | PARTS | MAKES | {".git", ".gitmodules", "config", "config.worktree"}


class Grounds:
    """The directories of a workspace, with the changes of one call in them."""

    def __init__(self, workspace: str, entries: Sequence[Altered], own: Iterable[str]) -> None:
        self._workspace = workspace
        self._entries = entries
        self._altered: dict[str, Altered] | None = None
        self._own = {folded_path(os.path.normpath(path)) for path in own}
        self._leading = {above for path in self._own for above in _above(path)}
        self.mattering = MATTERING | {path.rpartition("/")[2] for path in self._own | self._leading}
        """Names that can matter in a plain directory."""
        self._known: dict[str, Ground] = {"": PLAIN}

    def of(self, directory: str) -> Ground:
        """By its path; without recursion, since trees can be deeper than Python's stack."""
        missing: list[str] = []
        here = directory
        while (known := self._known.get(here)) is None:
            missing.append(here)
            here = here.rpartition("/")[0]
        ground = known
        for here in reversed(missing):
            ground = self._known[here] = self._below(ground, here)
        return ground

    def is_own(self, path: str) -> bool:
        return bool(self._own) and folded_path(path) in self._own

    def leads_to_own(self, path: str) -> bool:
        return bool(self._leading) and folded_path(path) in self._leading

    def is_repository(self, directory: str, when: When = "after") -> bool:
        """As git decides it for a directory of any name."""
        return self._has(directory, "HEAD", when) and (
            (self._has(directory, "objects", when) and self._has(directory, "refs", when))
            or self._has(directory, "commondir", when)
        )

    def left_lying(self, directory: str) -> str | None:
        """What was put into a directory before it became a repository, and is obeyed from then on."""
        inside = [f"{directory}/{name}" if directory else name for name in ("config", "config.worktree", "commondir")]
        hooks = f"{directory}/hooks" if directory else "hooks"
        try:
            names = os.listdir(os.path.join(self._workspace, hooks))
        except OSError:
            names = []
        inside += [f"{hooks}/{name}" for name in names if not name.endswith(".sample")]
        altered = self._by_path()
        for path in inside:
            if path not in altered and os.path.lexists(os.path.join(self._workspace, path)):
                return path
        return None

    def repository(self, directory: str, ground: Ground) -> Ground | None:
        """The ground as that of a git directory, if it is one."""
        if ground.kind in ("git", "worktree"):
            return ground
        if ground.kind in ("plain", "inside") and self.is_repository(directory):
            return Ground("git", directory)
        return None

    def _below(self, above: Ground, path: str) -> Ground:
        directory, _, last = path.rpartition("/")
        name = folded(last)
        if above.kind in ("closed", "hooks"):
            return above
        if self.is_own(path):
            return Ground("closed", path, "haft runs what lies there")
        if name == ".git":
            return Ground("git", path, hidden=True)
        if above.kind == "modules":
            return Ground("git", path, submodule=True, hidden=True) if self.is_repository(path) else above
        if above.kind == "worktrees":
            return Ground("worktree", path, owner=above.base, hidden=True)
        if name in PARTS and (repository := self.repository(directory, above)) is not None:
            part = _part(repository, path, name)
            if part is not None:
                return part
        return INSIDE if above.hidden else _named_below(above, path, name)

    def _has(self, directory: str, name: str, when: When) -> bool:
        path = f"{directory}/{name}" if directory else name
        all_altered = self._by_path()
        altered = all_altered.get(path)
        if altered is not None:
            return (altered.before if when == "before" else altered.after) is not None
        above = all_altered.get(directory)
        if above is not None and above.before is None:
            return False  # All that is in a new directory is new, and so among the changes.
        return os.path.lexists(os.path.join(self._workspace, path))

    def _by_path(self) -> dict[str, Altered]:
        if self._altered is None:
            self._altered = {each.path: each for each in self._entries}
        return self._altered


def named(above: Ground, name: str) -> Names | None:
    """How protected names go on with this one; empty where one ends, None where it is part of none."""
    if above.hidden:
        return None
    if above.named is not None and name in above.named:
        return above.named[name]
    return _NAMED.get(name)


def why(path: str) -> str:
    """Of what is protected by its name: the last part that is one, or begins one, says it."""
    return next(
        (_WHY[word] for word in map(folded, path.split("/")[:-4:-1]) if word in _WHY), "it is obeyed on the host"
    )


def folded_path(path: str) -> str:
    """A whole path, name by name."""
    return "/".join(map(folded, path.split("/")))


def _named_below(above: Ground, path: str, name: str) -> Ground:
    rest = named(above, name)
    if rest is None:
        return PLAIN
    return Ground("plain", named=rest) if rest else Ground("closed", path, why(path))


def _part(repository: Ground, path: str, name: str) -> Ground | None:
    """What a directory in a git directory is; None for nothing special."""
    if name == "hooks":
        return Ground("hooks", repository.base)
    if name in ("branches", "remotes"):
        return Ground("closed", path, "git takes addresses from it")
    if not repository.hidden:
        return None  # Repositories in there are known by what they hold.
    if name in ("rebase-merge", "sequencer"):
        return Ground("steps", path, hidden=True)
    return Ground("modules" if name == "modules" else "worktrees", repository.base, hidden=True)


def _above(path: str) -> Iterable[str]:
    words = path.split("/")
    return ("/".join(words[:count]) for count in range(1, len(words)))
