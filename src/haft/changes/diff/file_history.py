"""The history of one path: each run that changed it, and each time someone saved it outside of haft between two runs.

`blame` says who wrote each line that is there now; this says what happened to the file, with the difference each time.
Renames are not followed: a renamed file has the history of its new name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from haft.changes.commit.entry import Entry
from haft.changes.commit.images import open_or_none
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.diff.compare import PathComparison, Side, compare
from haft.changes.diff.text_content import Open
from haft.changes.kept_changes import ChangeSet, KeptChanges
from haft.changes.ledger import Row
from haft.contracts import HaftError
from haft.values import dataclass

_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One change of a path: by a run, or by someone outside of haft."""

    row: Row | None
    """The change set; None for a change outside of haft."""
    after: str | None
    """For a change outside of haft: the last run before it; None if no run is known."""
    before: str | None
    """For a change outside of haft: the first run after it; None if the file is like this now."""
    type: str
    """`create`, `modify` or `delete`."""
    compared: PathComparison | None
    """The difference; None if it is no longer stored."""

    def to_json(self) -> dict[str, Any]:
        row, compared = self.row, self.compared
        text = None if compared is None or compared.text is None else compared.text
        return {
            "run": None if row is None else row.run,
            "verb": None if row is None else row.verb,
            "state": None if row is None else row.state,
            "latest": None if row is None else row.latest,
            "at": None if row is None else row.at,
            "after": self.after,
            "before": self.before,
            "type": self.type,
            "added": 0 if compared is None else compared.added,
            "removed": 0 if compared is None else compared.removed,
            "diff": None if text is None else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
            "note": "the contents are no longer stored" if compared is None else compared.note,
        }


@dataclass(frozen=True, slots=True)
class _State:
    """The path at one moment, and how to read it."""

    entry: Entry | None
    read: Open
    run: str | None

    def side(self, path: str) -> Side | None:
        return None if self.entry is None else Side(path, self.entry, self.read)


def file_history(kept: KeptChanges, workspace: str, path: str, limit: int) -> list[FileEdit]:
    """The last changes of a path, newest first. An undo is no entry of its own: the run that it undid is."""
    tree = Tree(workspace)
    try:
        entry = read_entry(tree, path)
        now = _State(entry, partial(open_or_none, tree, path), None)
        found: list[FileEdit] = []
        for edit in _edits(kept, workspace, path, now):
            found.append(edit)
            if len(found) == limit:
                break
        return found
    finally:
        tree.close()


def _edits(kept: KeptChanges, workspace: str, path: str, later: _State) -> Iterator[FileEdit]:
    for row in _rows(kept, workspace, path):
        try:
            found = kept.find(row.run)
        except HaftError:
            yield FileEdit(row, None, None, "modify", None)
            later = _State(later.entry, later.read, None)
            continue
        each = next((one for one in found.entries if one.path == path), None)
        if each is None:
            continue
        if not _same(each.after, later.entry):
            before = _State(each.after, partial(kept.read, found, each, "after"), row.run)
            yield FileEdit(None, row.run, later.run, _type(before.entry, later.entry), _compared(path, before, later))
        if row.verb not in ("undo", "redo"):
            yield _by_run(kept, found, each)
        later = _State(each.before, partial(kept.read, found, each, "before"), row.run)


def _by_run(kept: KeptChanges, found: ChangeSet, each: PathChange) -> FileEdit:
    before = _State(each.before, partial(kept.read, found, each, "before"), None)
    after = _State(each.after, partial(kept.read, found, each, "after"), None)
    return FileEdit(found.row, None, None, _type(each.before, each.after), _compared(each.path, before, after))


def _compared(path: str, before: _State, after: _State) -> PathComparison:
    return compare(before.side(path), after.side(path))


def _type(before: Entry | None, after: Entry | None) -> str:
    return "create" if before is None else "delete" if after is None else "modify"


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.content) == (other.kind, other.content)


def _rows(kept: KeptChanges, workspace: str, path: str) -> Iterator[Row]:
    """The change sets that changed a path and were in the workspace at some time, newest first."""
    before = None
    while rows := kept.ledger.touching(workspace, [path], before=before, limit=_PAGE):
        yield from (row for row in rows if row.state in ("committed", "undone"))
        before = rows[-1].seq
