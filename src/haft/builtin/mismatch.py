"""Says in one sentence why a text was not found in a file, to help with the next edit.

First it looks for invisible reasons (line endings, whitespace). If there are none, it finds the line that is most
similar to the missing text. The work is bounded: for a huge file the hint may be worse, but never slow.
"""

from __future__ import annotations

import difflib
from typing import Final

from haft.files import shown

_MOST_BYTES: Final = 4_000_000
_MOST_LINES: Final = 20_000
_LONGEST_LINE: Final = 300
_COMPARED: Final = 12
"""How many lines, preselected by a cheap measure, are compared thoroughly."""
_ALIKE: Final = 0.5


def why_not_found(content: bytes, wanted: bytes) -> str | None:
    """One sentence for a person that says why `content` does not contain `wanted`: for example, that the line endings
    differ, or which line is the most similar."""
    if not content:
        return "the file is empty"
    endings = _other_endings(content, wanted)
    if endings is not None:
        return endings
    lines = content[:_MOST_BYTES].split(b"\n")[:_MOST_LINES]
    wanted_lines = wanted[:_MOST_BYTES].split(b"\n")
    number = _same_but_for_whitespace(lines, wanted_lines)
    if number is not None:
        return f"only whitespace differs: line {number} is `{_line(lines[number - 1])}`"
    missing = next((line for line in wanted_lines if line.strip() and line not in content), None)
    if missing is None:
        return "each of its lines is in the file, but not in this order without other lines between them"
    number = _most_alike(lines, missing)
    if number is None:
        return f"no line of the file is like `{_line(missing)}`"
    return f"the closest to `{_line(missing)}` is line {number}: `{_line(lines[number - 1])}`"


def _other_endings(content: bytes, wanted: bytes) -> str | None:
    plain = wanted.replace(b"\r\n", b"\n")
    if plain.replace(b"\n", b"\r\n") in content:
        return "the file has CRLF line endings: end the lines of old_string and new_string with \\r\\n"
    if plain in content:
        return "the file has LF line endings: end the lines of old_string and new_string with \\n, not \\r\\n"
    return None


def _same_but_for_whitespace(lines: list[bytes], wanted: list[bytes]) -> int | None:
    """The number of the line where `wanted` begins in `lines` if whitespace is ignored; None if it does not occur."""
    bare = [b"".join(line.split()) for line in wanted]
    while bare and not bare[0]:
        bare.pop(0)
    while bare and not bare[-1]:
        bare.pop()
    if not bare:
        return None
    there = [b"".join(line.split()) for line in lines]
    position = -1
    for _ in range(_COMPARED):  # A very common first line (`}`) must not make this quadratic.
        try:
            position = there.index(bare[0], position + 1)
        except ValueError:
            break
        if there[position : position + len(bare)] == bare:
            return position + 1
    if len(bare) == 1:  # A single wanted line may be only a part of a line in the file.
        return next((number for number, line in enumerate(there, 1) if bare[0] in line), None)
    return None


def _most_alike(lines: list[bytes], wanted: bytes) -> int | None:
    """The number of the line most similar to `wanted`; None if no line is similar enough."""
    target = wanted.strip()[:_LONGEST_LINE]
    pieces = _pieces(target)
    scored = []
    for number, line in enumerate(lines, 1):
        there = _pieces(line.strip()[:_LONGEST_LINE])
        if there:
            scored.append((len(pieces & there) / len(pieces | there), -number))
    scored.sort(reverse=True)
    matcher = difflib.SequenceMatcher(b=target.decode("utf-8", "replace"), autojunk=False)
    best: tuple[float, int] | None = None
    for _, negative in scored[:_COMPARED]:
        matcher.set_seq1(lines[-negative - 1].strip()[:_LONGEST_LINE].decode("utf-8", "replace"))
        likeness = (matcher.ratio(), negative)
        if likeness[0] >= _ALIKE and (best is None or likeness > best):
            best = likeness
    return None if best is None else -best[1]


def _pieces(line: bytes) -> set[bytes]:
    """All pairs of neighbouring bytes: cheap to compare, and good enough to preselect lines."""
    return {line[index : index + 2] for index in range(max(len(line) - 1, min(len(line), 1)))}


def _line(line: bytes) -> str:
    text = line[:_LONGEST_LINE].decode("utf-8", "replace")
    return shown(text) + ("…" if len(line) > _LONGEST_LINE else "")
