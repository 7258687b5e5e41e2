"""A change set for a person: every path with its patch, or with a text if a patch cannot show the change.

The caller provides a function that reads content, because the content may be in the workspace, among originals, in the
blob store, or gone. `difference` returns all paths at once, `differences` yields one path after another, for printing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO, Literal

from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import PathChange, renames
from haft.changes.diff.compare import PathComparison, Side, compare
from haft.changes.diff.similar_files import edited_renames
from haft.contracts import Change
from haft.files import shown
from haft.values import dataclass

Read = Callable[[PathChange, Literal["before", "after"]], BinaryIO | None]
"""Opens the content of a file before or after the change; None if the content is no longer kept."""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """The difference of one path of a change set."""

    change: Change
    added: int
    """How many lines were added; `removed` is how many were removed."""
    removed: int
    text: str | None
    """A patch in git's format, ending with a newline; None if a patch cannot show the change."""
    note: str | None
    """What the patch does not show, or why there is no patch."""
    binary: bool = False
    size_before: int = 0
    size_after: int = 0
    renamed_to: str | None = None
    """For the old path of a rename: the new path, whose `FileDifference` shows the rename."""

    def to_json(self) -> dict[str, Any]:
        """The JSON of the change, with its diff. Bytes that are not UTF-8, such as in a link's target, become
        replacement characters."""
        text = None if self.text is None else self.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        shown_too = {"added": self.added, "removed": self.removed, "diff": text, "note": self.note}
        return {**self.change.to_json(), **shown_too}


def difference(entries: Sequence[PathChange], read: Read) -> tuple[FileDifference, ...]:
    """The differences of all entries, in the given order."""
    return tuple(differences(entries, read))


def differences(entries: Sequence[PathChange], read: Read) -> Iterator[FileDifference]:
    """Yield the differences of all entries, in the given order."""
    found = sources(entries, read)
    by_path = {each.path: each for each in entries}
    goals = {source: path for path, (source, _) in found.items()}
    for each in entries:
        if each.path in goals:
            yield _moved_away(each, goals[each.path])
        elif each.path in found:
            source, similarity = found[each.path]
            yield _file_difference(each, by_path[source], read, similarity)
        else:
            yield _file_difference(each, each, read)


def sources(entries: Sequence[PathChange], read: Read) -> dict[str, tuple[str, int]]:
    """Maps the new path of each renamed file to its old path and the percentage of equal lines."""
    found = {path: (source, 100) for path, source in renames(entries).items()}
    taken = {source for source, _ in found.values()}
    gone = [each for each in entries if each.after is None and each.path not in taken]
    came = [each for each in entries if each.before is None and each.path not in found]

    def opened(each: PathChange) -> Callable[[], BinaryIO | None]:
        return partial(read, each, "before" if each.after is None else "after")

    return found | edited_renames(gone, came, opened)


def _file_difference(each: PathChange, source: PathChange, read: Read, similarity: int = 100) -> FileDifference:
    before, after = source.before, each.after
    old = None if before is None else Side(source.path, before, partial(read, source, "before"))
    new = None if after is None else Side(each.path, after, partial(read, each, "after"))
    compared = compare(old, new, similarity)
    return _made(each, source.path if source is not each else None, compared, before)


def _made(each: PathChange, renamed_from: str | None, compared: PathComparison, before: Entry | None) -> FileDifference:
    return FileDifference(
        change=each.to_change(renamed_from),
        added=compared.added,
        removed=compared.removed,
        text=compared.text,
        note=compared.note,
        binary=compared.binary,
        size_before=0 if before is None else before.size,
        size_after=0 if each.after is None else each.after.size,
    )


def _moved_away(each: PathChange, goal: str) -> FileDifference:
    size = 0 if each.before is None else each.before.size
    note = f"renamed to {shown(goal)}"
    return FileDifference(each.to_change(), 0, 0, None, note, size_before=size, renamed_to=goal)
