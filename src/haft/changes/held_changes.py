"""Applying held change sets, whole or in part, and dropping them, from any process."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from haft.changes.commit.attributes import UnreadableAttributes, attributes_of, set_attributes
from haft.changes.commit.exact_copy import link
from haft.changes.commit.journal import CommitRefused, CommitUnfinished, write_journal
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.steps import as_latin, from_latin
from haft.changes.commit.tree import Tree, set_mode, set_owner
from haft.changes.objections import conflict_error
from haft.changes.transactions import (
    CONTAINED,
    LayerSources,
    Owner,
    TransactionResult,
    Transactions,
    unfinished_result,
)
from haft.contracts import BadUsage, Changes, ConflictingPath, ToolFailed, near_miss
from haft.values import dataclass, replace

MERGED: Final = "merged"
"""The directory beside `upper` with the files that a merge has made."""


def apply(
    transactions: Transactions,
    run: str,
    *,
    granted_paths: Sequence[str] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> TransactionResult:
    """Commit the held changes of a run. If someone changed the same files since the changes were held, nothing is
    committed, and the next `apply` compares with the files as they are now. If `granted_paths` is given, the guard
    judges the changes like the changes of a call: a person who approved the diff has not granted any path. If
    `granted_paths` is None, the guard does not judge the changes. Raises `CallStopped` if `stopped` returns True while
    this waits for the workspace lock."""
    with transactions.publisher.locked_and_settled(stopped):
        held, manifest = find_held(transactions, run)
        try:
            return _apply(transactions, run, held, manifest, granted_paths)
        except OSError as failure:
            error = ToolFailed(f"its changes are still held: the disk failed ({failure})")
            return TransactionResult(manifest.changes("held", reason=error.message), error)


def _how_to_go_on(run: str, paths: str = "") -> str:
    return (
        f"`haft changes apply {run}{paths} --merge` merges both sides; the same command without `--merge` "
        f"overwrites the present files: look at `haft diff {run}` first"
    )


def _apply(
    transactions: Transactions, run: str, held: str, manifest: Manifest, granted_paths: Sequence[str] | None
) -> TransactionResult:
    found, (manifest, moved) = manifest, _against_current(transactions, manifest)
    if moved:
        write_journal(held, manifest)
        against = tuple(ConflictingPath(path, transactions.who_changed(path, found)) for path in moved)
        error = conflict_error(moved, "it changed again since", hint=_how_to_go_on(run))
        return TransactionResult(manifest.changes("held", against), error)
    if granted_paths is not None:
        conflicts = [from_latin(path) for path in manifest.notes.get("conflicts", ())]
        objection = transactions.objections.to_commit(manifest, f"held/{run}/upper", conflicts, granted_paths)
        if objection is not None:
            transactions.ledger.set_state(run, "held", objection.message)
            return TransactionResult(
                manifest.changes("held", tuple(map(ConflictingPath, conflicts)), objection.message), objection
            )
    if granted_paths is None:
        manifest = replace(manifest, notes={**manifest.notes, "accepted": True})
    sources = LayerSources(f"{transactions.live_in_area}/{run}/upper", transactions, run)
    return commit_held(transactions, held, manifest, sources)


def commit_held(transactions: Transactions, held: str, manifest: Manifest, sources: LayerSources) -> TransactionResult:
    """Commit a change set whose directory is `held`. If that is refused, it stays held."""
    run = manifest.run
    live = os.path.join(transactions.live, run)
    os.rename(held, live)
    try:
        manifest = transactions.commit(run, manifest, sources)
    except CommitUnfinished as left:
        return unfinished_result(manifest, left)
    except CommitRefused as refusal:
        os.rename(live, held)
        error = conflict_error([refusal.path], refusal.why)
        return TransactionResult(manifest.changes("held", (ConflictingPath(refusal.path),)), error)
    if not transactions.publisher.is_published(run):  # Otherwise its new files still wait there.
        transactions.remove_new_files(live)
    transactions.finish(manifest)
    return TransactionResult(manifest.changes("committed"))


def apply_part(
    transactions: Transactions,
    run: str,
    paths: Sequence[str],
    owner: Owner,
    stopped: Callable[[], bool] = lambda: False,
    granted_paths: Sequence[str] | None = None,
) -> PartResult:
    """Commit the held changes of some paths, and of everything below them; the rest stays held. The committed part
    becomes a change set of its own, that of `owner`, whose parent is `run`: it can be undone by itself, or together
    with the rest. `granted_paths` are those of `apply`. Raises `BadUsage` if the run changes none of these paths."""
    with transactions.publisher.locked_and_settled(stopped):
        held, manifest = find_held(transactions, run)
        part = chosen_paths(manifest.run, manifest.entries, paths)
        names = {each.path for each in part}
        left = [each for each in manifest.entries if each.path not in names]
        # The rest needs its new directories too: someone may undo the part before the rest is applied.
        needed = {above for each in left if each.after is not None for above in _above(each.path)} & names
        rest = [each for each in manifest.entries if each.path not in names or each.path in needed]
        if not left:
            return PartResult(_apply(transactions, run, held, manifest, granted_paths), 0)
        chosen = replace(manifest, entries=tuple(part))
        if granted_paths is not None:
            conflicts = [path for path in map(from_latin, manifest.notes.get("conflicts", ())) if path in names]
            objection = transactions.objections.to_commit(chosen, f"held/{run}/upper", conflicts, granted_paths)
            if objection is not None:
                against = tuple(map(ConflictingPath, conflicts))
                refused = TransactionResult(chosen.changes("held", against, objection.message), objection)
                return PartResult(refused, len(left))
        current, moved = _against_current(transactions, chosen)
        if moved:
            refreshed = {each.path: each for each in current.entries}
            entries = tuple(refreshed.get(each.path, each) for each in manifest.entries)
            write_journal(held, replace(manifest, entries=entries, notes=current.notes))
            against = tuple(ConflictingPath(path, transactions.who_changed(path, manifest)) for path in moved)
            error = conflict_error(moved, "it changed again since", hint=_how_to_go_on(run, " PATH…"))
            return PartResult(TransactionResult(chosen.changes("held", against), error), len(left))
        try:
            settled = _split(transactions, held, manifest, current, rest, owner)
        except OSError as failure:
            failed = ToolFailed(f"its changes are still held: the disk failed ({failure})")
            return PartResult(TransactionResult(chosen.changes("held", reason=failed.message), failed), len(left))
        return PartResult(settled, len(left))


@dataclass(frozen=True, slots=True)
class PartResult:
    """How applying a part of a change set ended."""

    result: TransactionResult
    left: int
    """How many paths are still held."""


def chosen_paths(run: str, entries: Sequence[PathChange], paths: Sequence[str]) -> list[PathChange]:
    """Those of a run's changes that belong to the paths, to everything below them, and to the new directories that they
    need. Raises `BadUsage` if the run changes none of these paths."""
    wanted: set[str] = set()
    for path in paths:
        name = os.path.normpath(path)
        below = "" if name == "." else f"{name}/"
        found = [each.path for each in entries if each.path == name or each.path.startswith(below)]
        if not found:
            near = near_miss(name, [each.path for each in entries])
            hint = f"did you mean `{near}`?" if near else f"`haft diff --stat {run}` lists its changes"
            raise BadUsage(f"{run} holds no change of `{path}`", hint=hint)
        wanted.update(found)
    by_path = {each.path: each for each in entries}
    for path in list(wanted):
        if by_path[path].after is None:
            continue
        wanted.update(each for each in _above(path) if each in by_path and _is_new_directory(by_path[each]))
    return [each for each in entries if each.path in wanted]


def _above(path: str) -> list[str]:
    """The directories above a path, relative to the workspace."""
    found = []
    while path := os.path.dirname(path):
        found.append(path)
    return found


def _is_new_directory(each: PathChange) -> bool:
    is_directory = each.after is not None and each.after.kind == "directory"
    return is_directory and (each.before is None or each.before.kind != "directory")


def _split(
    transactions: Transactions,
    held: str,
    manifest: Manifest,
    part: Manifest,
    rest: Sequence[PathChange],
    owner: Owner,
) -> TransactionResult:
    """Hold the part as a change set of its own, take it out of the change set that it was in, and commit it. If this
    process is killed on the way, the part is held, perhaps in both change sets, and nothing is lost."""
    upper = f"{transactions.live_in_area}/{owner.run}.layer/upper"
    place = os.path.join(transactions.area.path, upper)
    os.makedirs(place, mode=0o700)
    source = os.path.relpath(os.path.join(held, "upper"), transactions.area.path)
    with Tree(transactions.area.path, forced=True) as ours:
        _link_files(ours, source, upper, part.entries)
    names = {each.path for each in part.entries}
    conflicts = [path for path in manifest.notes.get("conflicts", ()) if from_latin(path) not in names]
    notes = {name: value for name, value in manifest.notes.items() if name not in ("conflicts", "contains")}
    part = replace(
        part, run=owner.run, notes={**notes, "owner": owner.to_json(), "accepted": True, "part_of": manifest.run}
    )
    reason = f"they are a part of the changes of {manifest.run}"
    transactions.hold(owner, part, upper, reason)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(place))
    left = replace(
        manifest,
        entries=tuple(rest),
        notes={**manifest.notes, **({"conflicts": conflicts} if "conflicts" in manifest.notes else {})},
    )
    left.write(held)
    transactions.ledger.set_files(manifest.run, len([each for each in rest if each not in part.entries]))
    with Tree(transactions.area.path, forced=True) as ours:
        stay = {each.path for each in rest}
        for each in sorted(part.entries, key=lambda one: one.path, reverse=True):
            if each.after is not None and each.path not in stay:
                where, name = ours.at(f"{source}/{each.path}")
                with contextlib.suppress(OSError):
                    (os.rmdir if each.after.kind == "directory" else os.unlink)(name, dir_fd=where)
    return _apply(transactions, owner.run, os.path.join(transactions.area.held, owner.run), part, None)


def _link_files(ours: Tree, source: str, target: str, entries: Sequence[PathChange]) -> None:
    """Give the new files of the entries a second name below `target`, and make the directories on the way. Directories
    of the entries get the mode and the owner that they have below `source`."""
    made: list[str] = []
    for each in sorted(entries, key=lambda one: one.path):
        if each.after is None:
            continue
        parts = each.path.split("/")
        depth = len(parts) if each.after.kind == "directory" else len(parts) - 1
        for count in range(1, depth + 1):
            path = "/".join(parts[:count])
            if ours.status(f"{target}/{path}") is None:
                where, name = ours.at(f"{target}/{path}")
                os.mkdir(name, 0o700, dir_fd=where)
                made.append(path)
        if each.after.kind != "directory":
            link(ours, f"{source}/{each.path}", ours, f"{target}/{each.path}")
    for path in reversed(made):
        status = ours.status(f"{source}/{path}")
        if status is not None:
            set_owner(ours, f"{target}/{path}", status.st_uid, status.st_gid)
            with contextlib.suppress(UnreadableAttributes):
                set_attributes(ours.proc_path(f"{target}/{path}"), attributes_of(ours.proc_path(f"{source}/{path}")))
            set_mode(ours, f"{target}/{path}", stat.S_IMODE(status.st_mode))


def _against_current(transactions: Transactions, manifest: Manifest) -> tuple[Manifest, list[str]]:
    """The change set, with the current file of each path as the state before the change; and the paths whose current
    file differs from the one that the run found. Inodes may differ: an equal file may have been restored or written
    again."""
    entries: list[PathChange] = []
    moved: list[str] = []
    with transactions.tree() as workspace:
        for each in manifest.entries:
            now = read_entry(workspace, each.path, forced=True)
            if now is not None and _is_new_directory(each) and each.after is not None and each.after.is_like(now):
                continue  # Another part of the same change set has made it.
            same = now is None if each.before is None else each.before.is_like(now)
            if not same:
                moved.append(each.path)
            if now is not None or each.after is not None:
                entries.append(PathChange(each.path, now, each.after))
    if not moved:
        return replace(manifest, entries=tuple(entries)), moved
    return replace(manifest, entries=tuple(entries), notes=_notes_of_moved(manifest, moved)), moved


def _notes_of_moved(manifest: Manifest, moved: Sequence[str]) -> dict[str, Any]:
    """The notes of a change set some of whose paths were changed by others. They say what the run found there, for a
    merge."""
    notes = manifest.notes
    bases = {
        as_latin(each.path): each.before and each.before.to_json() for each in manifest.entries if each.path in moved
    }
    for path in notes.get("conflicts", ()):
        bases.pop(path, None)  # The state before the change is that of somebody else already.
    known = {**bases, **notes.get("bases", {})}
    return {**notes, "began": time.time(), "first_began": notes.get("first_began", notes.get("began")), "bases": known}


def drop(transactions: Transactions, run: str) -> Changes:
    """Discard the held changes of a run."""
    with transactions.locked():
        held, manifest = find_held(transactions, run)
        contained = (Manifest.read(os.path.join(held, CONTAINED, each)) for each in manifest.notes.get("contains", ()))
        for each in filter(None, contained):
            transactions.record_discarded(each)
        transactions.ledger.set_state(run, "discarded")
        with contextlib.suppress(OSError):  # The changes count as dropped now: `haft store prune` removes the files.
            transactions.detach_and_remove(held)
    return manifest.changes("discarded")


def find_held(transactions: Transactions, run: str) -> tuple[str, Manifest]:
    """The directory and the manifest of a run's held changes. Raises `BadUsage` if the run has no held changes, or if
    they were dropped, even if their files still exist."""
    held = os.path.join(transactions.area.held, run)
    manifest, row = Manifest.read(held), transactions.ledger.get(run)
    if manifest is None or (row is not None and row.state == "discarded"):
        raise BadUsage(f"{run} holds no changes", hint=f"`haft show {run}` shows the state of its changes")
    return held, manifest
