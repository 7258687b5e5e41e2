"""A change set as a person reads it: every path with its patch, or with words where a patch cannot tell.

Stands between the manifest (what changed) and the surfaces (how it is shown). Content comes through a port, because it
may lie in the workspace, among displaced originals or in the store, or be gone. `difference` gives all at once,
`differences` one after another, for those who print.
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
"""Content of a file, before or after; None: no longer kept."""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One path of a change set."""

    change: Change
    added: int
    """Lines."""
    removed: int
    text: str | None
    """A patch in git's form, ending with a newline."""
    note: str | None
    """What the patch does not tell, or why there is none."""
    binary: bool = False
    size_before: int = 0
    size_after: int = 0
    renamed_to: str | None = None
    """Of the deleted half of a rename: it is shown there, and has neither lines nor text of its own."""

    def to_json(self) -> dict[str, Any]:
        """As the change, with what is shown of it. Of a link that leads to no UTF-8, as with paths, a readable form."""
        text = None if self.text is None else self.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        told = {"added": self.added, "removed": self.removed, "diff": text, "note": self.note}
        return {**self.change.to_json(), **told}


def difference(entries: Sequence[PathChange], read: Read) -> tuple[FileDifference, ...]:
    """Each entry, in the order given."""
    return tuple(differences(entries, read))


def differences(entries: Sequence[PathChange], read: Read) -> Iterator[FileDifference]:
    """The same, each made when it is asked for."""
    sources = _sources(entries, read)
    by_path = {each.path: each for each in entries}
    goals = {source: path for path, (source, _) in sources.items()}
    for each in entries:
        if each.path in goals:
            yield _moved_away(each, goals[each.path])
        elif each.path in sources:
            source, similarity = sources[each.path]
            yield _file_difference(each, by_path[source], read, similarity)
        else:
            yield _file_difference(each, each, read)


def _sources(entries: Sequence[PathChange], read: Read) -> dict[str, tuple[str, int]]:
    """By created path: the deleted one it was, and how many percent of it stayed."""
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
