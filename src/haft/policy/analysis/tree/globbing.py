"""Expands patterns of file names in the workspace, within limits.

The result may have more names than bash would find, never fewer: brackets match anything, and if perhaps nothing
matches, the pattern itself is one of the results, because bash leaves such a pattern unchanged. If a link on the way
leads out of the workspace, the path of the link is a result, so that a later check finds it.
"""

from __future__ import annotations

import os
from typing import Final

from haft.policy.analysis.tree.matching import NameTest, matcher
from haft.policy.analysis.tree.path_resolver import PathResolver

_MAX_MATCHES: Final = 1_000
_MAX_ENTRIES: Final = 10_000

_MAX_LENGTH: Final = 1_024
_MAX_PATTERNS: Final = 8

Marked = tuple[tuple[str, bool], ...]
"""The characters of a word, each with True if it is quoted, so that it is no wildcard."""


def is_pattern(marked: Marked) -> bool:
    """Whether bash would expand this text to file names."""
    opened = False
    for character, is_quoted in marked:
        if not is_quoted and (character in "*?" or (character == "]" and opened)):
            return True
        opened = opened or (not is_quoted and character == "[")
    return False


def expand_pattern(marked: Marked, directory: str, resolver: PathResolver) -> tuple[str, ...] | None:
    """The names that a pattern may expand to, relative to a directory; None if there are too many."""
    literal = "".join(character for character, _ in marked)
    parts = _parts(marked)
    if len(marked) > _MAX_LENGTH or sum(map(is_pattern, parts)) > _MAX_PATTERNS:
        return None
    found = ["/"] if literal.startswith("/") else [""]
    entries = 0
    for part in parts:
        if not is_pattern(part):
            name = "".join(character for character, _ in part)
            found = [each + name + "/" for each in found]
            continue
        matches = _test(part)
        following: list[str] = []
        for each in found:
            resolver.deadline.check()
            if not resolver.leads_inside(directory, each or "."):
                following.append(each)
                continue
            names = _names(os.path.join(directory, each), _MAX_ENTRIES - entries)
            if names is None:
                return None
            entries += len(names)
            for name in names:
                resolver.deadline.check()
                if matches(name):
                    following.append(f"{each}{name}/")
            if len(following) > _MAX_MATCHES:
                return None
        found = following
    slashes = literal[len(literal.rstrip("/")) :]
    names = [(each.rstrip("/") + slashes) or "/" for each in found]
    is_exact = bool(names) and not any(character == "[" for character, _ in marked)
    return tuple(dict.fromkeys(names if is_exact else [literal, *names]))


def _parts(marked: Marked) -> list[Marked]:
    parts: list[list[tuple[str, bool]]] = [[]]
    for character, is_quoted in marked:
        if character == "/":
            parts.append([])
        else:
            parts[-1].append((character, is_quoted))
    return [tuple(part) for part in parts if part]


def _names(directory: str, most: int) -> list[str] | None:
    names = [".", ".."]
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > most:
                    return None
    except (OSError, ValueError):
        return []
    return names


def _test(part: Marked) -> NameTest:
    """A test for the names that one component of a pattern matches. Programs do not agree on the meaning of brackets,
    so everything from the first `[` to the last `]` counts as `*`."""
    marks = [(character, is_quoted or character not in "*?") for character, is_quoted in part]
    begins = next((at for at, mark in enumerate(part) if mark == ("[", False)), len(part))
    ends = max((at for at, (character, _) in enumerate(part) if character == "]"), default=-1)
    shows_hidden = part[0][0] == "." or begins == 0
    if begins < ends:
        marks[begins : ends + 1] = [("*", False)]
    matches = matcher(marks)
    return matches if shows_hidden else lambda name: not name.startswith(".") and matches(name)
