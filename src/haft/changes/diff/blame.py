"""Who wrote each line of a file: the run, or someone outside of haft, found by replaying the file's change sets.

Every run is replayed, oldest first. A run wrote the lines that its file has after the run and did not have before. If
the file differs from what the run before left, someone outside of haft wrote the difference. An undo or redo brings
lines back with those who wrote them. A renamed file takes its lines along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from haft.changes.commit.entry import Entry
from haft.changes.commit.images import open_or_none
from haft.changes.commit.manifest import PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.diff.difference import sources
from haft.changes.diff.line_matching import differing_middle, differing_ranges
from haft.changes.diff.text_content import content_of
from haft.changes.kept_changes import ChangeSet, KeptChanges
from haft.changes.ledger import Row
from haft.contracts import BadUsage, HaftError
from haft.files import shown
from haft.values import dataclass

_PAGE: Final = 200
_MOST_NAMES: Final = 100
"""How many earlier names of a renamed file are followed."""

Source = Literal["run", "outside", "older", "unknown"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a line comes from."""

    source: Source
    """`run`: a run wrote it. `outside`: someone wrote it outside of haft, between two runs. `older`: it was there
    before the first run that changed the file. `unknown`: the contents that would tell are no longer stored."""
    run: str | None = None
    """The run that wrote the line; for `outside`, the last run before."""
    who: str | None = None
    thread: str | None = None
    at: float | None = None
    """When the run committed its changes."""
    applied_by: str | None = None
    """The run with which someone applied this part of the run's held changes."""

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "run": self.run,
            "who": self.who,
            "thread": self.thread,
            "at": self.at,
            "appliedBy": self.applied_by,
        }


OLDER: Final = Origin("older")
UNKNOWN: Final = Origin("unknown")


@dataclass(frozen=True, slots=True)
class BlamedLine:
    """One line of a file, without its end, and where it comes from."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Version:
    """The content of a file at one moment. If it is no longer stored, or is no text, the lines are those of the last
    version that is known."""

    digest: str | None
    lines: Sequence[str] = ()
    origins: Sequence[Origin] = ()
    is_known: bool = True
    run: str | None = None
    """The run that left the file like this."""


_NO_FILE: Final = _Version(None)


def blame(kept: KeptChanges, workspace: str, path: str) -> list[BlamedLine]:
    """The lines of a file in a workspace, each with its origin. Raises `BadUsage` if the file does not exist or is not
    text."""
    current = _current(workspace, path)
    origins = _Replay(kept, workspace).origins_of(path, current)
    return [BlamedLine(line.removesuffix("\n"), origin) for line, origin in zip(current.lines, origins, strict=True)]


def _current(workspace: str, path: str) -> _Version:
    tree = Tree(workspace)
    try:
        entry = read_entry(tree, path)
        if entry is None:
            raise BadUsage(f"there is no file `{shown(path)}`", hint=f"`haft log --path {shown(path)}` lists its runs")
        if entry.kind != "file":
            raise BadUsage(f"`{shown(path)}` is not a file")
        content = content_of(entry, partial(open_or_none, tree, path))
    finally:
        tree.close()
    if content.trouble is not None:
        words = {"large": "is too large", "unreadable": "cannot be read", "gone": "cannot be read"}
        raise BadUsage(f"`{shown(path)}` {words.get(content.trouble, 'is not text in UTF-8')}")
    return _Version(entry.content, content.lines)


class _Replay:
    """Replays the change sets that changed a file under any of its names."""

    def __init__(self, kept: KeptChanges, workspace: str) -> None:
        self._kept = kept
        self._workspace = workspace
        self._now: dict[str, _Version] = {}
        self._before: dict[tuple[str, str], _Version] = {}
        self._after: dict[tuple[str, str], _Version] = {}
        self._lost: dict[str, bool] = {}
        """The names whose last change set is no longer stored."""
        self._moves: dict[str, dict[str, str]] = {}

    def origins_of(self, path: str, current: _Version) -> Sequence[Origin]:
        names, rows = self._names_and_rows(path)
        for row in rows:
            self._take(row, names)
        return self._reconciled(path, current).origins

    def _names_and_rows(self, path: str) -> tuple[set[str], list[Row]]:
        """All names that the file had, and the change sets of these names, oldest first."""
        names, waiting, rows = {path}, [path], dict[int, Row]()
        while waiting:
            for row in self._rows(waiting.pop()):
                if row.seq in rows:
                    continue
                rows[row.seq] = row
                found = self._found(row)
                moved = {} if found is None else self._moved(found, names)
                new = {old for name, old in moved.items() if name in names} - names
                if len(names) + len(new) <= _MOST_NAMES:
                    names |= new
                    waiting += new
        return names, [rows[seq] for seq in sorted(rows)]

    def _rows(self, path: str) -> Iterator[Row]:
        """The change sets that changed a path and were in the workspace at some time, newest first."""
        before = None
        while rows := self._kept.ledger.touching(self._workspace, [path], before=before, limit=_PAGE):
            yield from (row for row in rows if row.state in ("committed", "undone"))
            before = rows[-1].seq

    def _found(self, row: Row) -> ChangeSet | None:
        try:
            return self._kept.find(row.run)
        except HaftError:
            return None

    def _moved(self, found: ChangeSet, names: set[str]) -> dict[str, str]:
        """Maps the new path of each file that a run renamed to its old path. Empty if none of `names` is new."""
        if found.run not in self._moves:
            if not any(each.before is None and each.path in names for each in found.entries):
                return {}
            found_moves = sources(found.entries, lambda each, side: self._kept.read(found, each, side))
            self._moves[found.run] = {path: old for path, (old, _) in found_moves.items()}
        return self._moves[found.run]

    def _take(self, row: Row, names: set[str]) -> None:
        found = self._found(row)
        if found is None:
            self._lost.update(dict.fromkeys(names, True))
            return
        ours = {each.path: each for each in found.entries if each.path in names}
        moved = self._moved(found, names)
        bases = {path: self._base(found, each) for path, each in ours.items()}
        self._now |= {path: self._result(found, each, bases, moved) for path, each in ours.items()}
        for path in ours:
            self._before[row.run, path], self._after[row.run, path] = bases[path], self._now[path]

    def _base(self, found: ChangeSet, each: PathChange) -> _Version:
        """The file before a run."""
        return self._reconciled(each.path, self._version(found, each, "before"))

    def _result(
        self, found: ChangeSet, each: PathChange, bases: Mapping[str, _Version], moved: Mapping[str, str]
    ) -> _Version:
        """The file after a run."""
        row, after = found.row, self._version(found, each, "after")
        if after.digest is None:
            return after
        if row.verb != "call" and (back := self._brought_back(row, each.path, after)) is not None:
            return back
        base = bases.get(moved.get(each.path, each.path), bases[each.path])
        return _rewritten(base, after, self._origin(found), row.run)

    def _origin(self, found: ChangeSet) -> Origin:
        """Who wrote the lines of a change set. The lines of a part that someone applied are from the run that made the
        changes."""
        row = found.row
        maker = None if found.part_of is None else self._kept.ledger.get(found.part_of)
        if maker is None:
            return Origin("run", row.run, row.who, row.thread, row.at)
        return Origin("run", maker.run, maker.who, maker.thread, row.at, applied_by=row.run)

    def _brought_back(self, row: Row, path: str, after: _Version) -> _Version | None:
        """The version that an undo or redo brought back; None if it is not known."""
        reversed_runs = [self._kept.ledger.get(run) for run in row.reverses]
        runs = [each.run for each in sorted((one for one in reversed_runs if one is not None), key=lambda one: one.seq)]
        versions = self._before if row.verb == "undo" else self._after
        for run in runs if row.verb == "undo" else reversed(runs):
            version = versions.get((run, path))
            if version is not None and version.digest == after.digest:
                return version
        return None

    def _version(self, found: ChangeSet, each: PathChange, side: Literal["before", "after"]) -> _Version:
        entry: Entry | None = each.before if side == "before" else each.after
        if entry is None or entry.kind != "file":
            return _NO_FILE
        content = content_of(entry, lambda: self._kept.read(found, each, side))
        return _Version(entry.content, content.lines, is_known=content.trouble is None)

    def _reconciled(self, path: str, found: _Version) -> _Version:
        """The version `found`, with the origins of its lines. Its lines differ from those of the last known version
        only if someone outside of haft wrote the file."""
        last = self._now.get(path)
        is_lost = self._lost.pop(path, False)
        if last is not None and last.digest == found.digest:
            return last
        writer = UNKNOWN if is_lost else OLDER if last is None else Origin("outside", last.run)
        return _rewritten(_NO_FILE if last is None else last, found, writer, None if last is None else last.run)


def _rewritten(base: _Version, new: _Version, writer: Origin, run: str | None) -> _Version:
    """The version `new`: the lines that `base` has too keep their origins, all others are from `writer`."""
    if not new.is_known:
        return _Version(new.digest, base.lines, base.origins, is_known=False, run=run)
    if not base.is_known:
        writer = UNKNOWN
    ranges = differing_ranges(base.lines, new.lines)
    if ranges is None:
        start, old_end, new_end = differing_middle(base.lines, new.lines)
        ranges = [(start, old_end, start, new_end)]
    origins: list[Origin] = []
    at = 0
    for old_at, old_end, new_at, new_end in ranges:
        origins += base.origins[at:old_at]
        origins += [writer] * (new_end - new_at)
        at = old_end
    origins += base.origins[at:]
    return _Version(new.digest, new.lines, origins, run=run)
