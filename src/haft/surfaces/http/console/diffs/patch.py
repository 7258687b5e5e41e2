"""Reads a patch in git's form, as haft writes it: files, hunks and lines. Between the patches of files stand lines
about what a patch cannot show, such as `delete directory dist`, or `(a note)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from haft.values import dataclass, field

Mark = Literal[" ", "-", "+"]
FileKind = Literal["created", "modified", "deleted", "renamed"]
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PLAIN: Final = re.compile(r"(create|modify|delete) (directory )?(.+)")
_KINDS: Final[dict[str, FileKind]] = {"create": "created", "modify": "modified", "delete": "deleted"}
_ESCAPES: Final = re.compile(rb'\\(?:([0-7]{3})|([abtnvfr"\\]))')
_LETTERS: Final = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


@dataclass(slots=True)
class Line:
    """A line of a hunk, with its number before and after."""

    mark: Mark
    text: str
    old: int
    new: int
    has_end: bool = True
    """Whether a line end follows it in the file."""


@dataclass(slots=True)
class Hunk:
    old: int
    new: int
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class FilePatch:
    """The change of one path."""

    path: str
    kind: FileKind = "modified"
    renamed_from: str | None = None
    modes: tuple[str, str] | None = None
    hunks: list[Hunk] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_patch: bool = True
    """False if there is only a line that names it: a directory, or content that a patch cannot show."""
    is_directory: bool = False
    added: int = 0
    removed: int = 0


def read_patch(text: str) -> tuple[list[FilePatch], list[str]]:
    """The files of a patch, and further lines that belong to no file."""
    files: list[FilePatch] = []
    loose: list[str] = []
    lines = iter(text.removesuffix("\n").split("\n")) if text else iter(())
    for line in lines:
        if line.startswith("diff --git "):
            files.append(FilePatch(_named(line)))
        elif line.startswith("@@ ") and files and (found := _HUNK.match(line)):
            _read_hunk(files[-1], found, lines)
        elif files and files[-1].is_patch and _read_header(files[-1], line):
            continue
        elif line.startswith("(") and line.endswith(")") and files:
            files[-1].notes.append(line[1:-1])
        elif found := _PLAIN.fullmatch(line):
            files.append(FilePatch(_unquoted(found[3]), _KINDS[found[1]], is_patch=False, is_directory=bool(found[2])))
        elif line:
            loose.append(line)
    return files, loose


def _read_hunk(file: FilePatch, found: re.Match[str], lines: Iterator[str]) -> None:
    """The lines of a hunk: its head says how many they are, so a line of it is never taken for a header."""
    hunk = Hunk(int(found[1]), int(found[3]))
    old_left, new_left = int(found[2] or 1), int(found[4] or 1)
    old, new = hunk.old, hunk.new
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            break
        if line.startswith("\\"):
            if hunk.lines:
                hunk.lines[-1].has_end = False
            continue
        mark: Mark = "-" if line[:1] == "-" else "+" if line[:1] == "+" else " "
        hunk.lines.append(Line(mark, line[1:], old, new))
        if mark != "+":
            old, old_left = old + 1, old_left - 1
        if mark != "-":
            new, new_left = new + 1, new_left - 1
    file.added += sum(line.mark == "+" for line in hunk.lines)
    file.removed += sum(line.mark == "-" for line in hunk.lines)
    file.hunks.append(hunk)


def _read_header(file: FilePatch, line: str) -> bool:
    """Read a header of a file. Returns False if the line is none."""
    name, _, rest = line.partition(" ")
    if line.startswith(("--- ", "+++ ", "similarity index ", "index ", "\\ ")):
        return True
    if line.startswith("new file mode "):
        file.kind = "created"
    elif line.startswith("deleted file mode "):
        file.kind = "deleted"
    elif line.startswith("rename from "):
        file.kind, file.renamed_from = "renamed", _unquoted(line.removeprefix("rename from "))
    elif line.startswith("rename to "):
        file.path = _unquoted(line.removeprefix("rename to "))
    elif line.startswith("old mode "):
        file.modes = (rest.removeprefix("mode "), "")
    elif line.startswith("new mode ") and file.modes is not None:
        file.modes = (file.modes[0], rest.removeprefix("mode "))
    else:
        return False
    return bool(name)


def _named(line: str) -> str:
    """The path in `diff --git a/PATH b/PATH`. Both halves are equal, except for a rename, whose headers name both."""
    rest = line.removeprefix("diff --git ")
    if rest.endswith('"'):
        return _unquoted(rest[: (len(rest) - 1) // 2])[2:] if rest.startswith('"') else rest[2:]
    half = rest[: (len(rest) - 1) // 2]
    return _unquoted(half)[2:]


def _unquoted(name: str) -> str:
    """A name that git may have quoted."""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    raw = _ESCAPES.sub(lambda found: bytes([int(found[1], 8) if found[1] else _LETTERS[found[2]]]), name[1:-1].encode())
    return raw.decode("utf-8", "replace")
