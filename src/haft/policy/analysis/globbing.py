"""What patterns of file names stand for, looked up in the workspace, with bounds.

It answers with more names rather than fewer: a bracket stands for any one character, and the pattern itself is among
the answers wherever nothing may match, since bash then leaves it alone. A part that is a link out of the workspace is
answered as it is, so that whoever checks the answers finds it.
"""

from __future__ import annotations

import os
import re
from typing import Final

from haft.policy.analysis.places import Places

_MOST_MATCHES: Final = 1_000
_MOST_ENTRIES: Final = 10_000

_LONGEST: Final = 1_024
_MOST_PATTERNS: Final = 8
_MOST_STARS: Final = 4

Marked = tuple[tuple[str, bool], ...]
"""Characters, each with whether it is quoted and so stands for itself."""


def is_pattern(marked: Marked) -> bool:
    """Whether bash would look for files."""
    opened = False
    for character, is_quoted in marked:
        if not is_quoted and (character in "*?" or (character == "]" and opened)):
            return True
        opened = opened or (not is_quoted and character == "[")
    return False


def looked_up(marked: Marked, directory: str, places: Places) -> tuple[str, ...] | None:
    """The names that a pattern may stand for, seen from a directory; None where there are too many to look at."""
    literal = "".join(character for character, _ in marked)
    parts = _parts(marked)
    if len(marked) > _LONGEST or sum(map(is_pattern, parts)) > _MOST_PATTERNS:
        return None
    found = ["/"] if literal.startswith("/") else [""]
    entries = 0
    for part in parts:
        if not is_pattern(part):
            name = "".join(character for character, _ in part)
            found = [each + name + "/" for each in found]
            continue
        pattern = _expression(part)
        following: list[str] = []
        for each in found:
            if not places.leads_inside(directory, each or "."):
                following.append(each)
                continue
            names = _names(os.path.join(directory, each), _MOST_ENTRIES - entries)
            if names is None:
                return None
            entries += len(names)
            following += [f"{each}{name}/" for name in names if pattern.fullmatch(name)]
            if len(following) > _MOST_MATCHES:
                return None
        found = following
    names = [each.rstrip("/") or "/" for each in found]
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


def _expression(part: Marked) -> re.Pattern[str]:
    first, is_quoted = part[0]
    written = "" if first == "." or (first == "[" and not is_quoted) else r"(?!\.)"
    at = 0
    stars = [each for each, (character, is_quoted) in enumerate(part) if character == "*" and not is_quoted]
    while at < len(part):
        character, is_quoted = part[at]
        # What stands between many stars is left out: to look for it may take very long.
        if len(stars) > _MOST_STARS and at == stars[0]:
            at = stars[-1]
        close = _closing(part, at) if character == "[" and not is_quoted else None
        if close is not None:
            written += "."
            at = close
        elif is_quoted or character not in "*?":
            written += re.escape(character)
        elif character == "?":
            written += "."
        elif not written.endswith(".*"):
            written += ".*"
        at += 1
    return re.compile(written, re.DOTALL)


def _closing(part: Marked, start: int) -> int | None:
    """Where a bracket closes at the earliest that bash may think; brackets in brackets are left to the caller."""
    for at in range(start + 2, len(part)):
        if part[at][0] == "]":
            return at
    return None
