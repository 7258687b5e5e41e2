"""Applying or dropping held change sets, from any process."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

from haft.changes.commit.journal import CommitRefused, CommitUnfinished, write_journal
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.steps import from_latin
from haft.changes.transactions import LayerSources, TransactionResult, Transactions, conflict_error, unfinished_result
from haft.contracts import BadUsage, Changes, ConflictingPath, ToolFailed
from haft.values import replace


def apply(transactions: Transactions, run: str, *, granted_paths: Sequence[str] | None = None) -> TransactionResult:
    """Commit the held changes of a run. If someone changed the same files since the changes were held, nothing is
    committed, and the next `apply` compares with the files as they are now. If `granted_paths` is given, the guard
    judges the changes like the changes of a call: a person who approved the diff has not granted any path. If
    `granted_paths` is None, the guard does not judge the changes."""
    with transactions.locked():
        held, manifest = _find_held(transactions, run)
        try:
            return _apply(transactions, run, held, manifest, granted_paths)
        except OSError as failure:
            error = ToolFailed(f"its changes are still held: the disk failed ({failure})")
            return TransactionResult(manifest.changes("held", reason=error.message), error)


def _apply(
    transactions: Transactions, run: str, held: str, manifest: Manifest, granted_paths: Sequence[str] | None
) -> TransactionResult:
    manifest, moved = _against_current(transactions, manifest)
    if moved:
        write_journal(held, manifest)
        against = tuple(ConflictingPath(path, transactions.who_changed(path, manifest)) for path in moved)
        error = conflict_error(
            moved, "it changed again since", hint=f"look at `haft diff {run}`, then `haft changes apply {run}` again"
        )
        return TransactionResult(manifest.changes("held", against), error)
    if granted_paths is not None:
        conflicts = [from_latin(path) for path in manifest.notes.get("conflicts", ())]
        objection = transactions.objection(manifest, f"held/{run}/upper", conflicts, granted_paths)
        if objection is not None:
            transactions.ledger.set_state(run, "held", objection.message)
            return TransactionResult(
                manifest.changes("held", tuple(map(ConflictingPath, conflicts)), objection.message), objection
            )
    if granted_paths is None:
        manifest = replace(manifest, notes={**manifest.notes, "accepted": True})
    live = os.path.join(transactions.live, run)
    os.rename(held, live)
    try:
        upper = f"{transactions.live_in_area}/{run}/upper"
        manifest = transactions.commit(run, manifest, LayerSources(upper, transactions, run))
    except CommitUnfinished as left:
        return unfinished_result(manifest, left)
    except CommitRefused as refusal:
        os.rename(live, held)
        error = conflict_error([refusal.path], refusal.why)
        return TransactionResult(manifest.changes("held", (ConflictingPath(refusal.path),)), error)
    with contextlib.suppress(OSError):
        transactions.detach_and_remove(os.path.join(live, "upper"))
    transactions.finish(manifest)
    return TransactionResult(manifest.changes("committed"))


def _against_current(transactions: Transactions, manifest: Manifest) -> tuple[Manifest, list[str]]:
    """The change set, with the current file of each path as the state before the change; and the paths whose current
    file differs from the one that the run found. Inodes may differ: an equal file may have been restored or written
    again."""
    entries: list[PathChange] = []
    moved: list[str] = []
    with transactions.tree() as workspace:
        for each in manifest.entries:
            now = read_entry(workspace, each.path, forced=True)
            same = now is None if each.before is None else each.before.is_like(now)
            if not same:
                moved.append(each.path)
            if now is not None or each.after is not None:
                entries.append(PathChange(each.path, now, each.after))
    notes = {**manifest.notes, "began": time.time()} if moved else manifest.notes
    return replace(manifest, entries=tuple(entries), notes=notes), moved


def drop(transactions: Transactions, run: str) -> Changes:
    """Discard the held changes of a run."""
    with transactions.locked():
        held, manifest = _find_held(transactions, run)
        transactions.ledger.set_state(run, "discarded")
        with contextlib.suppress(OSError):  # The changes count as dropped now: `haft store prune` removes the files.
            transactions.detach_and_remove(held)
    return manifest.changes("discarded")


def _find_held(transactions: Transactions, run: str) -> tuple[str, Manifest]:
    """The directory and the manifest of a run's held changes. Raises `BadUsage` if the run has no held changes, or if
    they were dropped, even if their files still exist."""
    held = os.path.join(transactions.area.held, run)
    manifest, row = Manifest.read(held), transactions.ledger.get(run)
    if manifest is None or (row is not None and row.state == "discarded"):
        raise BadUsage(f"{run} holds no changes", hint=f"`haft show {run}` shows the state of its changes")
    return held, manifest
