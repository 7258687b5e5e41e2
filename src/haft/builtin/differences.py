"""A short unified diff of two versions of a file, for the answer to an edit.

Its work and length are bounded: the common start and end of both versions are cut off before the comparison. If the
change is still too large, only its size is given. The diff is for people and models, not for `patch`: bytes that are
not UTF-8 are replaced, and long lines are cut.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

_CONTEXT: Final = 3
_MOST_COMPARED: Final = 1000
_MOST_SHOWN: Final = 100
_LONGEST_LINE: Final = 300


def short_diff(before: bytes, after: bytes, path: str) -> str:
    """The changes from `before` to `after`, as a unified diff."""
    old, new = _lines(before), _lines(after)
    start = _shared(old, new)
    end = _shared(old[start:][::-1], new[start:][::-1])
    first = max(start - _CONTEXT, 0)
    old_part = old[first : len(old) - max(end - _CONTEXT, 0)]
    new_part = new[first : len(new) - max(end - _CONTEXT, 0)]
    widest = max(len(old_part), len(new_part))
    if widest > _MOST_COMPARED:
        return f"(the changes spread over {widest} lines, too many to show)"
    lines = [f"--- {path}", f"+++ {path}", *_hunks(old_part, new_part, first)]
    if len(lines) > _MOST_SHOWN:
        lines[_MOST_SHOWN:] = [f"(and {len(lines) - _MOST_SHOWN} more lines)"]
    return "\n".join(lines)


def _lines(content: bytes) -> list[bytes]:
    """The lines, each with its newline. So a last line with a newline differs from the same line without a newline."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _shared(old: list[bytes], new: list[bytes]) -> int:
    """How many lines `old` and `new` have in common at the beginning."""
    for count, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return count
    return min(len(old), len(new))


def _hunks(old: list[bytes], new: list[bytes], offset: int) -> Iterator[str]:
    for group in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(_CONTEXT):
        yield f"@@ -{_span(group[0][1], group[-1][2], offset)} +{_span(group[0][3], group[-1][4], offset)} @@"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from _marked(" ", old[old_from:old_to])
                continue
            yield from _marked("-", old[old_from:old_to])
            yield from _marked("+", new[new_from:new_to])


def _span(start: int, end: int, offset: int) -> str:
    """A range as unified diffs write it: an empty range has the number of the line before it."""
    length = end - start
    begin = start + offset + (1 if length else 0)
    return f"{begin}" if length == 1 else f"{begin},{length}"


def _marked(mark: str, lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix(b"\n")
        cut = "…" if len(text) > _LONGEST_LINE else ""
        yield f"{mark}{text[:_LONGEST_LINE].decode('utf-8', 'replace')}{cut}"
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"
