"""Plans an undo or redo: makes a new change set, or a list of conflicts, from the runs that are to be reversed.

Undo and redo are the same work: every path goes from its expected current state to another state. If a path is not in
the expected state, someone changed it since, and nothing is touched.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Literal

from haft.changes.candidates import last_changes, with_parents
from haft.changes.commit.area import Area
from haft.changes.commit.entry import Entry, entry_from
from haft.changes.commit.images import Images
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.rebuild import Rebuilder
from haft.changes.commit.steps import from_latin
from haft.changes.commit.tree import Tree
from haft.changes.ledger import Ledger, Row
from haft.contracts import ConflictingPath, path_to_json
from haft.values import dataclass, field

Direction = Literal["undo", "redo"]


@dataclass(slots=True)
class ReversalPlan:
    """What an undo or redo of some runs would do."""

    direction: Direction
    rows: list[Row]
    entries: list[PathChange] = field(default_factory=list)
    conflicts: list[ConflictingPath] = field(default_factory=list)
    staying: list[str] = field(default_factory=list)
    """Directories that the reversal would delete, and that stay because others put files into them."""
    lost: list[str] = field(default_factory=list)
    """Runs whose change sets are no longer kept."""
    linked_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By path: all paths that must be hard links of the same file after the reversal, this path included."""
    formerly_linked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By path: all paths that were hard links of the same file before the reversal, this path included."""

    def actions(self) -> list[dict[str, str]]:
        """One action for each path, as `--dry-run` shows it."""
        found = [{**path_to_json(each.path), "action": _action(each)} for each in self.entries]
        return [*found, *({**path_to_json(path), "action": "keep"} for path in self.staying)]


def _action(each: PathChange) -> str:
    if each.after is None:
        return "delete"
    return "create" if each.before is None else "restore"


def plan_reversal(
    direction: Direction, rows: Sequence[Row], area: Area, workspace: Tree, ledger: Ledger, *, force: bool = False
) -> ReversalPlan:
    """Plan the reversal of these runs in the current workspace. With `force`, the plan replaces files that others
    changed since, and has no conflicts."""
    plan = ReversalPlan(direction, list(rows))
    have: dict[str, Entry | None] = {}
    want: dict[str, Entry | None] = {}
    conflicts: set[str] = set()
    manifests = {row.run: Manifest.read(os.path.join(area.path, "kept", row.run)) for row in rows}
    contained = {run for each in manifests.values() if each is not None for run in each.notes.get("contains", ())}
    # Undo goes from the newest run to the oldest, redo the other way.
    for row in sorted(rows, key=lambda row: row.seq, reverse=direction == "undo"):
        manifest = manifests[row.run]
        if row.run in contained:
            continue  # The change set of this nested call is inside that of its caller, which is reversed too.
        if manifest is None:
            plan.lost.append(row.run)
            continue
        if direction == "undo":
            undoing = [each.reversed() for each in manifest.entries]
            steps = _without_undone_calls(undoing, manifest, area, ledger, workspace)
        else:
            within = [inner for run in manifest.notes.get("contains", ()) if (inner := manifests.get(run)) is not None]
            steps = _to_redo(row, area, manifest, within)
        plan.linked_names.update(hard_links_in(manifest, "before" if direction == "undo" else "after"))
        plan.formerly_linked = {
            **hard_links_in(manifest, "after" if direction == "undo" else "before"),
            **plan.formerly_linked,
        }
        for each in steps:
            if each.path not in have:
                have[each.path] = each.before
            elif not _same(want[each.path], each.before):
                conflicts.add(each.path)  # Someone else changed the path between two of these runs.
            want[each.path] = each.after
    found, settled = _compare_paths(plan, have, want, workspace)
    conflicts |= found | _foreign_files_in_directories(plan, workspace)
    _keep_used_directories(plan, workspace)
    workspace.restore()
    if not force and (conflicts or settled):
        who = _last_changers(conflicts | settled, rows, area, workspace, ledger)
        # `settled` paths are already as wanted. That is no conflict if a person did it by hand. If a later run did it,
        # that run must be undone first.
        conflicts |= {path for path in settled if who[path] != "outside"}
        plan.conflicts = [ConflictingPath(path, who[path]) for path in sorted(conflicts, key=os.fsencode)]
        workspace.restore()
    return plan


def hard_links_in(manifest: Manifest, side: Literal["before", "after"]) -> dict[str, tuple[str, ...]]:
    """Maps each path that had hard links before or after a run (as `side` says) to all paths of the same file,
    including the path itself."""
    groups = (tuple(map(from_latin, group)) for group in manifest.notes.get("linked", {}).get(side, ()))
    return {name: group for group in groups for name in group}


def _to_redo(row: Row, area: Area, manifest: Manifest, within: Sequence[Manifest]) -> list[PathChange]:
    """The changes that a redo of one run makes. `within` are the change sets of the nested calls that are redone
    together with the run. Their paths are always among the changes, because someone may have undone a nested call
    before the whole run was undone."""
    touched = _paths_undone(area, row)
    if touched is None:
        return [*manifest.entries]
    # A redo need not restore paths that the undo did not change.
    touched = {*touched, *(each.path for inner in within for each in inner.entries)}
    return [each for each in manifest.entries if each.path in touched]


def _without_undone_calls(
    steps: list[PathChange], manifest: Manifest, area: Area, ledger: Ledger, workspace: Tree
) -> list[PathChange]:
    """The steps of a run's undo, adjusted for nested calls inside the run that were undone earlier: the paths of such a
    call are already in the state before the call, unless the run was redone since."""
    contained = [row for run in manifest.notes.get("contains", ()) if (row := ledger.get(run)) is not None]
    if not any(row.state == "undone" for row in contained):
        return steps
    manifests = {row.run: Manifest.read(os.path.join(area.path, "kept", row.run)) for row in contained}
    undone = [inner for row in contained if row.state == "undone" if (inner := manifests[row.run]) is not None]
    with_another = {run for inner in undone for run in inner.notes.get("contains", ())}
    own = {each.path: each for each in steps}
    found = dict(own)
    counting: set[str] = set()
    """Paths for which the loop has already met the newest nested call that was not undone."""
    for row in sorted(contained, key=lambda row: row.seq, reverse=True):
        inner = manifests[row.run]
        for each in () if inner is None or row.run in with_another else inner.entries:
            if each.path in counting:
                continue
            # Paths that all calls together left unchanged are not among the run's own changes.
            step = found.get(each.path, PathChange(each.path, each.after, each.after))
            if row.state == "undone" and _same(step.before, each.after):
                found[each.path] = PathChange(each.path, each.before, step.after)
            else:
                counting.add(each.path)
    for path, step in [*found.items()]:
        if step is not own.get(path) and not _same(read_entry(workspace, path, forced=True), step.before):
            if path in own:
                found[path] = own[path]
            else:
                del found[path]
    return [*found.values()]


def _compare_paths(
    plan: ReversalPlan, have: dict[str, Entry | None], want: dict[str, Entry | None], workspace: Tree
) -> tuple[set[str], set[str]]:
    """Fill the plan with the changes to make. `have` is the expected state of each path, `want` is the wanted state.
    Returns the paths that are not in the expected state, and those that are already in the wanted state."""
    conflicts: set[str] = set()
    settled: set[str] = set()
    for path in sorted(want, key=os.fsencode):
        now = read_entry(workspace, path, forced=True)
        if _same(now, want[path]) and not _has_wrong_links(plan, path, now, want, workspace):
            # It does not matter who made a directory that is wanted here. It matters who restored a directory's mode.
            is_only_there = now is not None and now.is_directory and not _is_directory(have[path])
            if not _same(now, have[path]) and not is_only_there:
                settled.add(path)
            continue
        if not _same(now, have[path]) or (want[path] is not None and not _has_parent(path, want, workspace)):
            conflicts.add(path)
        plan.entries.append(PathChange(path, now, want[path]))
    return conflicts, settled


def _has_wrong_links(
    plan: ReversalPlan, path: str, now: Entry | None, want: dict[str, Entry | None], workspace: Tree
) -> bool:
    """Whether a file has the wanted content but the wrong hard links."""
    if now is None or now.kind != "file":
        return False

    def are_one(others: Iterable[str]) -> bool:
        return any((found := workspace.status(each)) is not None and found.st_ino == now.inode for each in others)

    if path in plan.linked_names:
        others = [each for each in plan.linked_names[path] if each != path]
        are_there = any(want[each] if each in want else workspace.status(each) is not None for each in others)
        return are_there and not are_one(others)
    return now.links > 1 and are_one(each for each in plan.formerly_linked.get(path, ()) if each != path)


def _paths_undone(area: Area, row: Row) -> set[str] | None:
    """The paths that the undo of a run changed. Paths that were already in the wanted state are left out. None if the
    paths are unknown, or if the undo changed no path: then a redo restores all paths of the run."""
    undo = Manifest.read(os.path.join(area.path, "kept", row.latest)) if row.latest != row.run else None
    return (undo and {each.path for each in undo.entries}) or None


def _same(one: Entry | None, other: Entry | None) -> bool:
    return one is None if other is None else other.is_like(one)


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.is_directory


def _foreign_files_in_directories(plan: ReversalPlan, workspace: Tree) -> set[str]:
    """Files that others put into a directory that the plan replaces by something that is not a directory."""
    leaving = {each.path for each in plan.entries if each.after is None or not each.after.is_directory}
    return {
        inner
        for each in plan.entries
        if each.before is not None and each.before.is_directory
        if each.after is not None and not each.after.is_directory
        for inner, _status in workspace.walk(each.path)
        if inner not in leaving
    }


def _has_parent(path: str, want: dict[str, Entry | None], workspace: Tree) -> bool:
    """Whether the parent directory of a path will exist after the reversal."""
    above = os.path.dirname(path)
    if not above:
        return True
    if above in want:
        coming = want[above]
        return coming is not None and coming.is_directory
    status = workspace.status(above)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _keep_used_directories(plan: ReversalPlan, workspace: Tree) -> None:
    """Change the plan so that it does not delete directories that are still used: those that hold a path which the plan
    does not delete."""
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


def _last_changers(
    paths: Iterable[str], rows: Sequence[Row], area: Area, workspace: Tree, ledger: Ledger
) -> dict[str, str]:
    """Maps each path to the last run that changed it, if the path is still as that run left it; otherwise to
    `outside`."""
    who = dict.fromkeys(paths, "outside")
    first = min(rows, key=lambda row: row.seq)
    mine = {row.run for row in rows}
    altered_by = lru_cache(maxsize=50)(lambda run: _altered_by(area, run))
    for path in who:
        for row in last_changes(ledger, first.workspace, [*with_parents(path)], first.seq):
            each = None if row.run in mine else _change_at_or_above(path, altered_by(row.run))
            if each is not None:
                if _same(read_entry(workspace, each.path, forced=True), each.after):
                    who[path] = row.run
                break
    return who


def _altered_by(area: Area, run: str) -> dict[str, PathChange]:
    manifest = Manifest.read(os.path.join(area.path, "kept", run))
    return {} if manifest is None else {each.path: each for each in manifest.entries}


def _change_at_or_above(path: str, altered: dict[str, PathChange]) -> PathChange | None:
    """A run's change of a path. If the run did not change the path itself, but deleted or replaced a directory above
    it, the change of that directory. None if the run did neither."""
    each = altered.get(path)
    above = os.path.dirname(path)
    while each is None and above:
        found = altered.get(above)
        if found is not None and (found.after is None or not found.after.is_directory):
            each = found
        above = os.path.dirname(above)
    return each


class ReversalSources:
    """The `Sources` of a reversal. An original is moved back if it is still there. If not, the file is made anew from
    the blob store."""

    def __init__(
        self,
        images: Images,
        workspace: Tree,
        plan: ReversalPlan,
        candidates: Callable[[str], Sequence[str]],
        rebuilder: Rebuilder,
        make_renamable: Callable[[str, str], str],
        make_hard_link: Callable[[str, str], str | None],
    ) -> None:
        """`candidates` gives, for a path, the runs whose originals may hold its content. `rebuilder` makes files anew.
        `make_renamable` takes the place of a file in the area and a path, and returns the place from which a rename to
        that path works. `make_hard_link` takes a file of the workspace and a path, and makes a hard link of the file
        that can be renamed to the path; it returns the place of that link, or None."""
        self._make_hard_link = make_hard_link
        self._linked_names = plan.linked_names
        self._images = images
        self._workspace = workspace
        self._candidates = candidates
        self._rebuilder = rebuilder
        self._make_renamable = make_renamable
        self._coming = {each.path: each.after for each in plan.entries if each.after is not None}
        self._order = sorted(self._coming)
        """The paths of `_coming`, sorted, so that the content of a directory follows the directory."""
        self._leaving = {each.path for each in plan.entries if each.before is not None}
        self._found: dict[str, str] = {}
        self._joined: dict[Entry, str] = {}
        """By entry, including the inode: the place of a rebuilt file that has several hard links."""
        self._first: dict[tuple[str, ...], str] = {}
        """By group of hard links: the place of the first file of the group that was found or rebuilt."""
        self.made: dict[str, int] = {}
        self.lost: list[str] = []

    def require(self, path: str) -> None:
        """Find the wanted content of a path before anything is moved. If the content is no longer kept, add the path to
        `lost`."""
        wanted = self._coming[path]
        if wanted.is_directory:
            return
        place = self._images.original(path, wanted, self._candidates(path))
        if place is not None:
            self._found[path] = place
        elif not self._images.has(wanted):
            self.lost.append(path)

    def place_of(self, each: PathChange) -> str | None:
        wanted = each.after
        assert wanted is not None
        if wanted.is_directory:
            place = self._original_directory(each.path, wanted) or self._rebuilt_directory(each.path, wanted)
            return None if place is None else self._make_renamable(place, each.path)
        if (linked := self._hard_link(each.path, wanted)) is not None:
            return linked
        place = self._found.get(each.path) or self._rebuilt(wanted)
        group = self._linked_names.get(each.path)
        if group is not None and self._are_apart(first := self._first.setdefault(group, place), place):
            place = self._rebuilder.make(wanted, first)  # The kept copies are separate files.
        return self._make_renamable(place, each.path)

    def _are_apart(self, one: str, other: str) -> bool:
        first, second = (self._images.ours.status(each) for each in (one, other))
        return first is not None and second is not None and first.st_ino != second.st_ino

    def _hard_link(self, path: str, wanted: Entry) -> str | None:
        """The place of a new hard link, if this path was a hard link of a file that is still unchanged in the workspace
        under another name; otherwise None."""
        for known in self._linked_names.get(path, ()):
            if known != path and known not in self._leaving and wanted.is_like(read_entry(self._workspace, known)):
                return self._make_hard_link(known, path)
        return None

    def _rebuilt(self, wanted: Entry) -> str:
        """The place of a rebuilt file. If several of the restored paths were hard links of one file, they become hard
        links of one file again."""
        if wanted.kind != "file" or wanted.links < 2:
            return self._rebuilder.make(wanted)
        known = self._joined.get(wanted)
        place = self._rebuilder.make(wanted, known)
        self._joined.setdefault(wanted, place)
        return place

    def can_move_whole(self, path: str) -> bool:
        try:
            return all(inner in self._leaving for inner, _status in self._workspace.walk(path))
        finally:
            self._workspace.restore()

    def restore_modes(self) -> None:
        for tree in (self._workspace, self._images.ours):
            tree.restore()

    def _original_directory(self, path: str, wanted: Entry) -> str | None:
        """The place of an original directory that holds exactly the wanted content; None if there is none."""
        ours = self._images.ours
        expected: set[str] | None = None
        for run in self._candidates(path):
            place = self._images.originals(run).place(path)
            status = None if place is None else ours.status(place)
            if place is None or status is None or not wanted.is_like(entry_from(status)):
                continue
            if expected is None:
                expected = set(self._beneath(path))
            found = dict(ours.walk(place))
            names = {path + inner[len(place) :] for inner in found}
            fits = names == expected and all(
                self._coming[path + inner[len(place) :]].is_like(read_entry(ours, inner, below, forced=True))
                for inner, below in found.items()
            )
            ours.restore()
            if fits and all(
                self._has_all_links(path + inner[len(place) :], path, below) for inner, below in found.items()
            ):
                return place
        return None

    def _has_all_links(self, name: str, directory: str, status: os.stat_result) -> bool:
        """Whether an original in a directory and its hard links outside of that directory are all still one file. Such
        a link may have been deleted and made anew since."""
        for other in self._linked_names.get(name, ()):
            if other.startswith(f"{directory}/"):
                continue
            if other in self._coming:
                place = self._found.get(other)
                now = None if place is None else self._images.ours.status(place)
                if now is None or now.st_ino != status.st_ino:
                    return False
            elif (now := self._workspace.status(other)) is not None and now.st_ino != status.st_ino:
                return False
        return True

    def _rebuilt_directory(self, path: str, wanted: Entry) -> str | None:
        """The place of a rebuilt directory with all its content; None if some of the content can be moved back from an
        original, or has hard links."""
        beneath = self._beneath(path)
        for inner in beneath:
            entry = self._coming[inner]
            if inner in self._found or inner in self._linked_names or (entry.kind == "file" and entry.links > 1):
                return None
        place, inodes = self._rebuilder.make_tree(
            wanted, [(inner[len(path) + 1 :], self._coming[inner]) for inner in beneath]
        )
        self.made.update((f"{path}/{inner}", inode) for inner, inode in inodes.items())
        return place

    def _beneath(self, path: str) -> list[str]:
        """The wanted paths below a directory, each directory before its content."""
        first = bisect_left(self._order, path + "/")
        return self._order[first : bisect_left(self._order, path + "0", first)]  # "0" follows "/".
