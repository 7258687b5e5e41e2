"""One line for each file with the amount of change, in the format of `git diff --stat`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from haft.changes.diff.difference import FileDifference
from haft.changes.diff.patches import quoted

_LEAST_WIDTH: Final = 22
_LEAST_BAR: Final = 6


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    added: int = 0
    removed: int = 0
    words: str | None = None
    """If not None: a text that is shown instead of the numbers."""


@dataclass(frozen=True, slots=True)
class _Widths:
    name: int
    number: int
    bar: int
    most: int


def stat_lines(differences: Iterable[FileDifference], width: int) -> list[str]:
    """One line for each path, and a total. A rename has one line."""
    rows: list[_Row] = []
    files = directories = 0
    for each in differences:
        if each.renamed_to is None:
            rows.append(_row(each))
            directories += each.change.kind == "directory"
            files += each.change.kind != "directory"
    widths = _widths(rows, width)
    return [*(_line(row, widths, width) for row in rows), _sum(rows, files, directories)]


def _row(each: FileDifference) -> _Row:
    change = each.change
    if change.kind == "directory":
        return _Row(quoted(change.path + "/"), each.added, each.removed, _directory(each))
    name = quoted(change.path) if change.renamed_from is None else renamed(change.renamed_from, change.path)
    if each.binary:
        return _Row(name, words=f"Bin {each.size_before} -> {each.size_after} bytes")
    return _Row(name, each.added, each.removed, None if each.text is not None else each.note)


def _directory(each: FileDifference) -> str | None:
    if each.change.type == "modify":
        return each.note
    return "directory created" if each.change.type == "create" else "directory deleted"


def renamed(old: str, new: str) -> str:
    """Both names in one text, with shared parts written once: `a/{b => c}/d`."""
    if quoted(old) != old or quoted(new) != new:
        return f"{quoted(old)} => {quoted(new)}"
    start = _shared_folders(old, new)
    end = _shared_end(old, new, start)
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    if not start and not end:
        return f"{old} => {new}"
    return f"{old[:start]}{{{old_middle} => {new_middle}}}{old[len(old) - end :]}"


def _shared_folders(old: str, new: str) -> int:
    shared = 0
    for at, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            break
        if one == "/":
            shared = at + 1
    return shared


def _shared_end(old: str, new: str, start: int) -> int:
    """The length of the longest common end of both paths that begins with a slash; 0 if there is none. This slash may
    also be the last character of the common beginning, which has the length `start`."""
    shared = 0
    for at in range(1, min(len(old), len(new)) - start + (1 if start else 0) + 1):
        if at > len(old) or at > len(new) or old[-at] != new[-at]:
            break
        if old[-at] == "/":
            shared = at
    return shared


def _widths(rows: list[_Row], width: int) -> _Widths:
    counted = [row.added + row.removed for row in rows if row.words is None]
    words = max((len(row.words) for row in rows if row.words is not None), default=0)
    most = max(counted, default=0)
    number = max(len(str(most)), 3 if words else 0)
    width = max(width, _LEAST_WIDTH + number)
    name = max((len(row.name) for row in rows), default=0)
    bar = max(most, words - 4)  # A text begins in the column of the numbers.
    if name + number + 6 + bar > width:
        bar = min(bar, max(_LEAST_BAR, width * 3 // 8 - number - 6))
        if name > width - number - 6 - bar:
            name = width - number - 6 - bar
        else:
            bar = width - number - 6 - name
    return _Widths(name, number, bar, most)


def _line(row: _Row, widths: _Widths, width: int) -> str:
    start = f" {_shortened(row.name, widths.name).ljust(widths.name)} | "
    if row.words is None:
        return f"{start}{row.added + row.removed:>{widths.number}} {_bar(row, widths)}".rstrip()
    if row.words.startswith("Bin "):
        return start + " " * (widths.number - 3) + row.words
    room = max(width - len(start), _LEAST_BAR)
    return start + (row.words if len(row.words) <= room else row.words[: room - 1] + "…")


def _shortened(name: str, room: int) -> str:
    """The name. If the name is longer than `room`: `...` and as much of the end of the name as fits, beginning with a
    slash if possible."""
    if len(name) <= room:
        return name
    end = name[len(name) - max(0, room - 3) :]
    slash = end.find("/")
    return "..." + (end if slash < 0 else end[slash:])


def _bar(row: _Row, widths: _Widths) -> str:
    added, removed = row.added, row.removed
    if widths.bar <= widths.most:
        total = _scaled(added + removed, widths)
        if total < 2 and added and removed:
            total = 2
        if added < removed:
            added = _scaled(added, widths)
            removed = total - added
        else:
            removed = _scaled(removed, widths)
            added = total - removed
    return "+" * added + "-" * removed


def _scaled(count: int, widths: _Widths) -> int:
    """The length of the bar for a count: at least 1, unless the count is 0."""
    return 1 + count * (widths.bar - 1) // widths.most if count else 0


def _sum(rows: list[_Row], files: int, directories: int) -> str:
    added, removed = sum(row.added for row in rows), sum(row.removed for row in rows)
    parts = [_changed(files, directories)]
    if added or not removed:
        parts.append(f"{added} insertion{'' if added == 1 else 's'}(+)")
    if removed or not added:
        parts.append(f"{removed} deletion{'' if removed == 1 else 's'}(-)")
    return " " + ", ".join(parts)


def _changed(files: int, directories: int) -> str:
    counted = f"{files} file{'' if files == 1 else 's'}"
    if directories:
        counted += f" and {directories} director{'y' if directories == 1 else 'ies'}"
    return f"{counted} changed"
