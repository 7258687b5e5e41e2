"""A patch as the page shows it: files with blocks of lines, each line as HTML. A block is either unchanged lines, or
all removed lines and then all added ones; the style sheet pairs these side by side, or shows them one below the other.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from haft.surfaces.http.console.diffs.patch import FilePatch, Hunk, Line, read_patch
from haft.surfaces.http.console.diffs.syntax import Piece, coloured
from haft.surfaces.http.console.diffs.words import Ranges, changed_words
from haft.surfaces.http.console.written import written_code
from haft.values import dataclass, field

MOST_FILES: Final = 50
"""How many files are shown at once."""
MOST_LINES: Final = 2000
"""How many lines of one file are shown."""


@dataclass(slots=True)
class ShownLine:
    mark: str
    old: int
    new: int
    html: Markup
    has_end: bool


@dataclass(slots=True)
class Block:
    """Unchanged lines, or removed and added ones."""

    is_change: bool
    lines: list[ShownLine] = field(default_factory=list)

    @property
    def removed(self) -> list[ShownLine]:
        return [line for line in self.lines if line.mark == "-"]

    @property
    def added(self) -> list[ShownLine]:
        return [line for line in self.lines if line.mark == "+"]


@dataclass(slots=True)
class ShownHunk:
    line: int
    blocks: list[Block]


@dataclass(slots=True)
class ShownFile:
    """The change of a file, or of a directory that was deleted with everything in it."""

    path: str
    kind: str
    added: int
    removed: int
    hunks: list[ShownHunk]
    notes: list[str]
    is_one_sided: bool
    """Whether there is only a before or only an after, so that it takes the full width."""
    below: list[tuple[str, int]] = field(default_factory=list)
    """For a deleted directory: its files, each with its number of lines."""
    more_lines: int = 0

    @property
    def is_directory(self) -> bool:
        return self.path.endswith("/")

    @property
    def is_open(self) -> bool:
        """Whether it is shown unfolded at first."""
        return bool(self.hunks) and not (self.kind == "deleted" and self.removed > 40)


@dataclass(slots=True)
class ShownDiff:
    """The changes of a run."""

    files: list[ShownFile]
    added: int
    removed: int
    count: int
    """How many changes there are, also those that are not shown."""
    more: int = 0
    loose: list[str] = field(default_factory=list)
    size: int = 0
    """The length of the whole patch in characters."""


def counts_of(patch: str) -> tuple[int, int, int]:
    """How many lines a patch adds and removes, and how many changes it has: a deleted directory is one."""
    files = _with_directories(read_patch(patch)[0])
    return sum(each.added for each, _ in files), sum(each.removed for each, _ in files), len(files)


@functools.lru_cache(maxsize=32)
def shown_diff(patch: str, most_files: int = MOST_FILES) -> ShownDiff:
    """The patch as the page shows it. The same patch is shown many times while a page is live, so it is kept."""
    files, loose = read_patch(patch)
    grouped = _with_directories(files)
    shown = [_shown_file(each, below) for each, below in grouped[:most_files]]
    return ShownDiff(
        shown,
        sum(each.added for each, _ in grouped),
        sum(each.removed for each, _ in grouped),
        len(grouped),
        max(0, len(grouped) - most_files),
        loose,
        len(patch),
    )


def _with_directories(files: Sequence[FilePatch]) -> list[tuple[FilePatch, list[FilePatch]]]:
    """The files; those of a deleted directory together with it. Deleted directories come first."""
    gone = [each.path for each in files if each.kind == "deleted" and each.is_directory]
    tops = [path for path in gone if not any(path.startswith(f"{other}/") for other in gone if other != path)]
    below: dict[str, list[FilePatch]] = {path: [] for path in tops}
    rest = []
    for each in files:
        top = next((path for path in tops if each.path.startswith(f"{path}/")), None)
        if top is not None:
            if not each.is_directory:
                below[top].append(each)
        else:
            rest.append(each)
    directories = [each for each in rest if below.get(each.path)]
    for each in directories:
        each.removed = sum(one.removed for one in below[each.path])
    others = [each for each in rest if not below.get(each.path)]
    return [(each, below[each.path]) for each in directories] + [(each, []) for each in others]


def _shown_file(file: FilePatch, below: Sequence[FilePatch]) -> ShownFile:
    if below:
        listed = [(each.path, each.removed) for each in below]
        return ShownFile(f"{file.path}/", "directory deleted", 0, file.removed, [], file.notes, True, listed)
    notes = list(file.notes)
    if file.renamed_from is not None:
        notes.insert(0, f"was {file.renamed_from}")
    if file.modes is not None:
        became = "executable now" if file.modes[1].endswith("755") else "not executable any more"
        notes.append(became)
    left, hunks, more = MOST_LINES, [], 0
    for hunk in file.hunks:
        if left <= 0:
            more += len(hunk.lines)
            continue
        more += max(0, len(hunk.lines) - left)
        hunks.append(_shown_hunk(Hunk(hunk.old, hunk.new, hunk.lines[:left]), file.path))
        left -= len(hunk.lines)
    one_sided = file.kind in ("created", "deleted")
    path, kind = (f"{file.path}/", f"directory {file.kind}") if file.is_directory else (file.path, file.kind)
    return ShownFile(path, kind, file.added, file.removed, hunks, notes, one_sided, more_lines=more)


def _shown_hunk(hunk: Hunk, path: str) -> ShownHunk:
    old = iter(coloured([line.text for line in hunk.lines if line.mark != "+"], path))
    new = iter(coloured([line.text for line in hunk.lines if line.mark != "-"], path))
    pieces: list[list[Piece]] = []
    for line in hunk.lines:
        if line.mark == " ":
            next(old)
        pieces.append(next(old) if line.mark == "-" else next(new))
    marks: list[Ranges] = [[] for _ in hunk.lines]
    for first, last in _changes(hunk.lines):
        removed = [number for number in range(first, last) if hunk.lines[number].mark == "-"]
        added = [number for number in range(first, last) if hunk.lines[number].mark == "+"]
        for before, after in zip(removed, added, strict=False):
            marks[before], marks[after] = changed_words(hunk.lines[before].text, hunk.lines[after].text)
    blocks: list[Block] = []
    for line, of_line, of_words in zip(hunk.lines, pieces, marks, strict=True):
        is_change = line.mark != " "
        if not blocks or blocks[-1].is_change != is_change:
            blocks.append(Block(is_change))
        html = _line_html(of_line, of_words)
        blocks[-1].lines.append(ShownLine(line.mark, line.old, line.new, html, line.has_end))
    return ShownHunk(hunk.new or hunk.old, blocks)


def _changes(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Where changed lines stand together: from which line to which."""
    found: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        if line.mark == " ":
            continue
        if found and found[-1][1] == number:
            found[-1] = (found[-1][0], number + 1)
        else:
            found.append((number, number + 1))
    return found


def _line_html(pieces: Sequence[Piece], marks: Ranges) -> Markup:
    """A line with its colours, and its changed words marked."""
    html: list[str] = []
    at = 0
    for colour, text in pieces:
        for is_marked, part in _cut(text, at, marks):
            code = written_code(part)
            code = Markup(f'<span class="w">{code}</span>') if is_marked else code  # noqa: S704  both are escaped
            html.append(f'<span class="{colour}">{code}</span>' if colour else code)
        at += len(text)
    return Markup("".join(html))  # noqa: S704  every piece is


def _cut(text: str, at: int, marks: Ranges) -> list[tuple[bool, str]]:
    """A piece that begins at this column, cut where marks begin and end."""
    if not marks:
        return [(False, text)]
    edges = sorted({0, len(text), *(min(max(edge - at, 0), len(text)) for each in marks for edge in each)})
    parts = []
    for first, last in itertools.pairwise(edges):
        if first < last:
            parts.append((any(start <= at + first < end for start, end in marks), text[first:last]))
    return parts
