"""Taking back, and bringing back: from the runs to be reversed to a change set of its own, or to what stands in the way.

Both directions are the same work: every path is to go from the state that it should be in now to another one. Where it
is not in that state someone has changed it since, and nothing is touched.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from haft.changes.area import Area
from haft.changes.entry import Entry, entry_from
from haft.changes.images import Images
from haft.changes.ledger import Ledger, Row
from haft.changes.looking import look
from haft.changes.manifest import Altered, Manifest
from haft.changes.places import Tree
from haft.contracts import Conflicting, path_to_json

Direction = Literal["undo", "redo"]


@dataclass(slots=True)
class Reversal:
    """What undoing or redoing some runs would do."""

    direction: Direction
    rows: list[Row]
    entries: list[Altered] = field(default_factory=list)
    conflicts: list[Conflicting] = field(default_factory=list)
    staying: list[str] = field(default_factory=list)
    """Directories that others have put something into."""
    lost: list[str] = field(default_factory=list)
    """Paths whose content is no longer kept."""

    def actions(self) -> list[dict[str, str]]:
        """Path by path, as a dry run shows it."""
        found = [{**path_to_json(each.path), "action": _action(each)} for each in self.entries]
        return [*found, *({**path_to_json(path), "action": "keep"} for path in self.staying)]


def _action(each: Altered) -> str:
    if each.after is None:
        return "delete"
    return "create" if each.before is None else "restore"


def reversal(
    direction: Direction, rows: Sequence[Row], area: Area, workspace: Tree, ledger: Ledger, *, force: bool = False
) -> Reversal:
    """Look at what reversing these runs means now. With `force`, whatever is there now gives way."""
    plan = Reversal(direction, list(rows))
    have: dict[str, Entry | None] = {}
    want: dict[str, Entry | None] = {}
    conflicts: set[str] = set()
    # The newest first when going back, the oldest first when going forth.
    for row in sorted(rows, key=lambda row: row.seq, reverse=direction == "undo"):
        manifest = Manifest.read(os.path.join(area.path, "kept", row.run))
        if manifest is None:
            plan.lost.append(row.run)
            continue
        for each in manifest.entries:
            step = each.reversed() if direction == "undo" else each
            if each.path not in have:
                have[each.path] = step.before
            elif not _same(want[each.path], step.before):
                conflicts.add(each.path)  # Someone else came between two of them.
            want[each.path] = step.after
    for path in sorted(want, key=os.fsencode):
        now = look(workspace, path)
        if _same(now, want[path]):
            continue  # It is as it should be already.
        if not _same(now, have[path]) and not _fits(now, want[path]):
            conflicts.add(path)
        elif want[path] is not None and not _has_room(path, want, workspace):
            conflicts.add(path)
        plan.entries.append(Altered(path, now, want[path]))
    _leave_what_others_use(plan, workspace)
    if conflicts and not force:
        who = _culprits(conflicts, rows, area, workspace, ledger)
        plan.conflicts = [Conflicting(path, who[path]) for path in sorted(conflicts, key=os.fsencode)]
    return plan


def _same(one: Entry | None, other: Entry | None) -> bool:
    return one is None if other is None else other.is_like(one)


def _fits(now: Entry | None, want: Entry | None) -> bool:
    """Directories get along: one that is there already serves, and one that someone opened or closed may still go."""
    return now is not None and now.is_directory and (want is None or want.is_directory)


def _has_room(path: str, want: dict[str, Entry | None], workspace: Tree) -> bool:
    """Whether there is, or will be, a directory to put it into."""
    above = os.path.dirname(path)
    if not above:
        return True
    if above in want:
        coming = want[above]
        return coming is not None and coming.is_directory
    status = workspace.status(above)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _leave_what_others_use(plan: Reversal, workspace: Tree) -> None:
    """A directory that is to go and holds what is not to go stays, and so do those above it."""
    leaving = {each.path for each in plan.entries if each.after is None}
    stays: set[str] = set()
    for each in plan.entries:
        if each.after is not None or each.before is None or not each.before.is_directory or each.path in stays:
            continue
        for inner, _status in workspace.walk(each.path):
            if inner not in leaving:
                above = os.path.dirname(inner)
                while len(above) >= len(each.path):
                    stays.add(above)
                    above = os.path.dirname(above)
    plan.staying = sorted(stays & leaving, key=os.fsencode)
    plan.entries = [each for each in plan.entries if each.path not in stays]


def _culprits(paths: Iterable[str], rows: Sequence[Row], area: Area, workspace: Tree, ledger: Ledger) -> dict[str, str]:
    """Who made each path what it is: the last run that left it so, else someone outside."""
    unknown = dict.fromkeys(paths, "outside")
    open_ = set(unknown)
    first = min(rows, key=lambda row: row.seq)
    mine = {row.run for row in rows}
    for row in reversed(ledger.later(first)):
        if not open_:
            break
        if row.run in mine or row.state != "committed":
            continue
        manifest = Manifest.read(os.path.join(area.path, "kept", row.run))
        if manifest is None:
            continue
        altered = {each.path: each for each in manifest.entries}
        for path in list(open_):
            each = _met(path, altered)
            if each is not None:
                open_.discard(path)
                if _same(look(workspace, each.path), each.after):
                    unknown[path] = row.run
    return unknown


def _met(path: str, altered: dict[str, Altered]) -> Altered | None:
    """What a run did to a path, or to a directory that leads to it."""
    while path:
        if path in altered:
            return altered[path]
        path = os.path.dirname(path)
    return None


class Waiting:
    """The `Sources` of a reversal: originals that can be moved back, and for the rest copies made from the store."""

    def __init__(
        self,
        images: Images,
        workspace: Tree,
        plan: Reversal,
        candidates: Sequence[str],
        stage: Callable[[Entry], str],
        reachable: Callable[[str, str], str],
    ) -> None:
        """`stage` makes a thing anew and says where; `reachable` takes a place below the area, and a path, to where it
        can be renamed from."""
        self._images = images
        self._workspace = workspace
        self._candidates = candidates
        self._stage = stage
        self._reachable = reachable
        self._coming = {each.path: each.after for each in plan.entries if each.after is not None}
        self._leaving = {each.path for each in plan.entries if each.before is not None}
        self._found: dict[str, str] = {}
        self.lost: list[str] = []

    def require(self, path: str) -> None:
        """Find what is to come to a path before anything is moved; what is not kept any more is `lost`."""
        wanted = self._coming[path]
        if wanted.is_directory:
            return
        place = self._images.original(path, wanted, self._candidates)
        if place is not None:
            self._found[path] = place
        elif not self._images.has(wanted):
            self.lost.append(path)

    def waiting(self, each: Altered) -> str | None:
        wanted = each.after
        assert wanted is not None
        if wanted.is_directory:
            place = self._whole(each.path, wanted)
            return None if place is None else self._reachable(place, each.path)
        place = self._found.get(each.path) or self._stage(wanted)
        return self._reachable(place, each.path)

    def leaves_whole(self, path: str) -> bool:
        return all(inner in self._leaving for inner, _status in self._workspace.walk(path))

    def _whole(self, path: str, wanted: Entry) -> str | None:
        """Where a directory lies with exactly what is to come below it."""
        expected = {inner for inner in self._coming if inner.startswith(path + "/")}
        ours = self._images.ours
        for run in self._candidates:
            place = self._images.originals(run).place(path)
            status = None if place is None else ours.status(place)
            if place is None or status is None or not wanted.is_like(entry_from(status)):
                continue
            found = dict(ours.walk(place))
            names = {path + inner[len(place) :] for inner in found}
            if names == expected and all(
                self._coming[path + inner[len(place) :]].is_like(look(ours, inner, below, forced=True))
                for inner, below in found.items()
            ):
                return place
        return None
