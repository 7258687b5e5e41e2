"""Examines a directory tree that a program of the command line would walk through: lists its files, within limits, and
finds the links that lead out of the workspace.

Like `PathResolver`, this module sees the disk as it is now. All surveys of one line share one limit, so that a line
with many surveys does not cost more. `paths_below` lists links without following them; `stays_inside` follows them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.tree.gitnames import tracked_names
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.values import dataclass, field

_MAX_ENTRIES: Final = 4_000
_MAX_RETURNED: Final = 8_000
"""How many names all surveys of one line together may return, even if they list the same directory."""
_MAX_ROOTS: Final = 50
_MAX_DEPTH: Final = 100

_PLAIN: Final = regex(r"[A-Za-z0-9_.@%+,:=/#~$(){}!^&;|<>-]+")
"""Names that every shell and `xargs` read as one word, and that no shell expands."""
_LINE: Final = regex(r"[^\x00-\x1f\x7f\ud800-\udfff]+")


def is_one_word(name: str) -> bool:
    """Whether a name is ASCII without white space, quotes, backslashes and patterns, and does not begin with a dash."""
    return _PLAIN.fullmatch(name) is not None and not name.startswith("-")


def is_one_line(name: str) -> bool:
    """Whether a name is valid UTF-8 without control characters, and does not begin with a dash."""
    return _LINE.fullmatch(name) is not None and not name.startswith("-")


@dataclass(slots=True)
class Surveyor:
    """Examines the directory trees that the programs of one command line would walk through, within one limit for all
    of them."""

    resolver: PathResolver
    _left: int = _MAX_ENTRIES
    _returnable: int = _MAX_RETURNED
    _found: dict[tuple[str, int], tuple[str, ...] | None] = field(default_factory=dict)

    def paths_below(self, directory: str, root: str, deepest: int = _MAX_DEPTH) -> tuple[str, ...] | None:
        """The paths of everything below `root`, relative to `root`. `root` itself is relative to `directory`. Links are
        not followed.

        None if a limit is reached, the root leads out of the workspace, or a directory cannot be read.
        """
        place = self.resolver.resolve(directory, root)
        if place is None or not self.resolver.is_inside(place):
            return None
        key = (place, deepest)
        if key not in self._found:
            self._found[key] = self._list_tree(place, deepest)
        return self._within_limit(self._found[key])

    def tracked_names(self, directory: str) -> tuple[str, ...] | None:
        """The names that the repository of a directory tracks; None if haft cannot tell."""
        key = (directory, -1)
        if key not in self._found:
            self._found[key] = tracked_names(directory, self.resolver)
        return self._within_limit(self._found[key])

    def _within_limit(self, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        self.resolver.deadline.check()
        self._returnable -= 0 if names is None else len(names)
        return names if self._returnable >= 0 else None

    def _list_tree(self, top: str, deepest: int) -> tuple[str, ...] | None:
        found: list[str] = []
        waiting = [("", 1)]
        while waiting:
            inside, depth = waiting.pop()
            if depth > deepest:
                continue
            if depth > _MAX_DEPTH:
                return None
            entries = self._entries(f"{top}/{inside}")
            if entries is None:
                return None
            for name, is_directory in entries:
                path = inside + name
                found.append(path)
                if is_directory:
                    waiting.append((path + "/", depth + 1))
        return tuple(found)

    def _entries(self, directory: str) -> list[tuple[str, bool]] | None:
        """The names in a directory, each with True if it is the name of a directory; None if there are too many names,
        or the directory cannot be read."""
        found: list[tuple[str, bool]] = []
        self.resolver.deadline.check()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        return None
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
        except NotADirectoryError:
            return []
        except FileNotFoundError:
            return []
        except (OSError, ValueError):
            return None
        return found

    def stays_inside(self, directory: str, roots: Iterable[str]) -> bool:
        """Whether no link below these roots, or below the targets of such links, leads out of the workspace."""
        waiting = []
        for root in roots:
            place = self.resolver.resolve(directory, root)
            if place is None:
                return False
            waiting.append(place)
        seen: set[str] = set()
        while waiting:
            top = waiting.pop()
            if top in seen:
                continue
            seen.add(top)
            found = self.paths_below("/", top)
            if found is None or len(seen) > _MAX_ROOTS:
                return False
            for path in found:
                place = self._link_target(f"{top}/{path}")
                if place is None:
                    return False
                if place:
                    waiting.append(place)
        return True

    def _link_target(self, path: str) -> str | None:
        """The target of a link; an empty text if `path` is no link; None if the link leads out of the workspace."""
        if not os.path.islink(path):
            return ""
        place = self.resolver.resolve("/", path)
        return place if place is not None and self.resolver.is_inside(place) else None
