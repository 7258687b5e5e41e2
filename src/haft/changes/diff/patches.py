"""A change as a patch that `git apply` and `patch -p1` accept, with headers and hunks. Names are quoted, so that a
newline in a name does no harm.

`compare` reads the lines and calls this module.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from haft.changes.commit.entry import Entry
from haft.changes.diff.line_matching import Difference, differing_middle, differing_ranges
from haft.lazy import regex
from haft.values import dataclass

CONTEXT: Final = 3
"""How many unchanged lines are shown before and after a difference."""

_UNSAFE: Final = regex(rb'[\x00-\x1f"\\\x7f-\xff]')
_LETTERS: Final = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


@dataclass(frozen=True, slots=True)
class Hunks:
    """The differences between two texts, and how many lines were added and removed."""

    text: str | None
    """The hunks in unified format; None if the texts are too different to be shown line by line. Then all lines between
    the first and the last difference count as added and removed."""
    added: int
    removed: int


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends; only a newline ends a line, as in git."""
    *whole, rest = text.split("\n")
    lines = [line + "\n" for line in whole]
    return [*lines, rest] if rest else lines


def hunks(old: Sequence[str], new: Sequence[str]) -> Hunks:
    """The hunks from one text to another, in unified format."""
    found = differing_ranges(old, new)
    if found is None:
        return replaced(old, new)
    text = "".join(line for group in _grouped(found) for line in _hunk(group, old, new))
    return Hunks(text, sum(each[3] - each[2] for each in found), sum(each[1] - each[0] for each in found))


def replaced(old: Sequence[str], new: Sequence[str]) -> Hunks:
    """Hunks without a text: all lines between the first and the last difference count as replaced."""
    start, old_end, new_end = differing_middle(old, new)
    return Hunks(None, new_end - start, old_end - start)


def _grouped(found: Sequence[Difference]) -> Iterator[list[Difference]]:
    """Groups of differences, one group for each hunk: differences whose context lines would touch or overlap are in one
    group."""
    group: list[Difference] = []
    for each in found:
        if group and each[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _hunk(group: Sequence[Difference], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    old_at, new_at = max(0, group[0][0] - CONTEXT), max(0, group[0][2] - CONTEXT)
    old_end, new_end = min(len(old), group[-1][1] + CONTEXT), min(len(new), group[-1][3] + CONTEXT)
    yield f"@@ -{_span(old_at, old_end)} +{_span(new_at, new_end)} @@\n"
    for start, end, new_start, new_stop in group:
        yield from (_marked(" ", line) for line in old[old_at:start])
        yield from (_marked("-", line) for line in old[start:end])
        yield from (_marked("+", line) for line in new[new_start:new_stop])
        old_at = end
    yield from (_marked(" ", line) for line in old[old_at:old_end])


def _span(start: int, end: int) -> str:
    """A line range as in a hunk header, where lines count from 1. An empty range has the number of the line before."""
    length = end - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def quoted(name: str) -> str:
    """A name as git writes it: quoted and escaped if it contains quotes, backslashes, control characters or non-ASCII
    characters."""
    raw = name.encode("utf-8", "surrogateescape")
    if not _UNSAFE.search(raw):
        return name
    return '"' + _UNSAFE.sub(_escaped, raw).decode("ascii") + '"'


def _escaped(match: re.Match[bytes]) -> bytes:
    code = match[0][0]
    letter = _LETTERS.get(code)
    return (f"\\{letter}" if letter else f"\\{code:03o}").encode()


def git_mode(entry: Entry) -> int:
    """The mode in git's form, which tells only links, executable files and other files apart."""
    if entry.kind == "link":
        return stat.S_IFLNK
    return 0o100755 if entry.mode & stat.S_IXUSR else 0o100644


def patch(
    old: tuple[str, Entry] | None, new: tuple[str, Entry] | None, body: str, similarity: int | None = None
) -> str:
    """The patch of a file or link, whose hunks are `body`. If the paths differ, the patch is a rename with `similarity`
    percent."""
    named = old or new
    assert named is not None
    old_path, new_path = (old or named)[0], (new or named)[0]
    head = [f"diff --git {quoted('a/' + old_path)} {quoted('b/' + new_path)}"]
    if old is None and new is not None:
        head.append(f"new file mode {git_mode(new[1]):06o}")
    elif new is None and old is not None:
        head.append(f"deleted file mode {git_mode(old[1]):06o}")
    elif old is not None and new is not None and git_mode(old[1]) != git_mode(new[1]):
        head += [f"old mode {git_mode(old[1]):06o}", f"new mode {git_mode(new[1]):06o}"]
    if old_path != new_path:
        head += [f"similarity index {similarity}%", f"rename from {quoted(old_path)}", f"rename to {quoted(new_path)}"]
    if body:
        head.append("--- " + ("/dev/null" if old is None else _labelled("a/" + old_path)))
        head.append("+++ " + ("/dev/null" if new is None else _labelled("b/" + new_path)))
    return "\n".join(head) + "\n" + body


def _labelled(name: str) -> str:
    # Without the tab at the end, programs would take the text after a space in the name for a date.
    return quoted(name) + ("\t" if " " in name else "")
