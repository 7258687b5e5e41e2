"""Glob patterns for paths: `*`, `?`, `[…]`, `**`, `{a,b}`.

The names of a path are the parts between the slashes. A pattern without `/` matches the last name of a path, a pattern
with `/` matches the whole path. `*` and `?` match inside one name; a name `**` matches any number of directories, also
none. Braces are expanded first. Then the names of the pattern and of the path are compared one by one, so that this
never takes more steps than the product of the two lengths.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

_MOST_ALTERNATIVES: Final = 256

_Name = re.Pattern[str] | None
"""One name of a pattern, compiled; None for `**`."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a relative path matches `pattern`. Raises `ValueError` if the pattern is wrong."""
    if pattern.startswith("/"):
        raise ValueError("it begins with `/`, but paths are relative")
    anywhere: list[_Name] = []
    anchored: list[list[_Name]] = []
    for alternative in dict.fromkeys(_expand(pattern)):
        names = [_compile(name) for name in _names(alternative)]
        if "/" in alternative:
            anchored.append(names)
        else:
            anywhere.extend(names)

    def fits(path: str) -> bool:
        names = path.split("/")
        if any(name is None or name.match(names[-1]) for name in anywhere):
            return True
        return any(_fits(wanted, names) for wanted in anchored)

    return fits


def _names(pattern: str) -> list[str]:
    """The names of a pattern, without `.`, empty names and repeated `**`, which have no effect."""
    names: list[str] = []
    for name in pattern.split("/"):
        if name not in ("", ".") and not (name == "**" and names[-1:] == ["**"]):
            names.append(name)
    return names


def _compile(name: str) -> _Name:
    # The standard library translates a single name to a regular expression without catastrophic backtracking.
    return None if name == "**" else re.compile(fnmatch.translate(name))


def _fits(wanted: list[_Name], names: list[str]) -> bool:
    """Whether the names of a path match the pattern `wanted`. After a mismatch, the last `**` takes one more name; an
    earlier `**` never has to take more."""
    position = index = 0
    retry: tuple[int, int] | None = None
    while index < len(names):
        if position < len(wanted) and wanted[position] is None:
            # A `**` at the end matches everything inside a directory, so it needs at least one name.
            retry = (position + 1, index)
            position += 1
            if position == len(wanted):
                return True
        elif position < len(wanted) and (name := wanted[position]) is not None and name.match(names[index]):
            position += 1
            index += 1
        elif retry is not None:
            position, index = retry[0], retry[1] + 1
            retry = (position, index)
        else:
            return False
    return position == len(wanted)


def _expand(pattern: str) -> list[str]:
    """All patterns that the braces expand to. A brace that is not closed, or has no comma, is a plain character."""
    finished: list[str] = []
    pending = [pattern]
    while pending:
        current = pending.pop()
        braces = _first_braces(current)
        if braces is None:
            finished.append(current)
        else:
            start, commas, end = braces
            cuts = [start, *commas, end]
            choices = [current[left + 1 : right] for left, right in pairwise(cuts)]
            pending.extend(current[:start] + choice + current[end + 1 :] for choice in reversed(choices))
        if len(finished) + len(pending) > _MOST_ALTERNATIVES:
            raise ValueError(f"its braces expand to more than {_MOST_ALTERNATIVES} patterns")
    return finished


def _first_braces(pattern: str) -> tuple[int, list[int], int] | None:
    """The positions of the first pair of braces with a comma: the opening brace, the commas, the closing brace. None if
    there is no such pair."""
    opened: list[tuple[int, list[int]]] = []
    pairs: list[tuple[int, list[int], int]] = []
    for index, character in enumerate(pattern):
        if character == "{":
            opened.append((index, []))
        elif character == "," and opened:
            opened[-1][1].append(index)
        elif character == "}" and opened:
            start, commas = opened.pop()
            if commas:
                pairs.append((start, commas, index))
    return min(pairs, default=None)
