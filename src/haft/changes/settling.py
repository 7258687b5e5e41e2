"""Held change sets, settled by whoever comes: applied as they are, or dropped."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

from haft.changes.committing.commit import Refused, Unfinished, write_journal
from haft.changes.committing.looking import look
from haft.changes.committing.manifest import Altered, Manifest
from haft.changes.committing.steps import from_latin
from haft.changes.transactions import Mirror, Settled, Transactions, conflict, unfinished
from haft.contracts import BadUsage, Changes, Conflicting, ToolFailed
from haft.values import replace


def apply(transactions: Transactions, run: str, *, spared: Sequence[str] | None = None) -> Settled:
    """Commit what a run holds. Where its files changed again since anyone looked, nothing is touched, and the change
    set is from then on one against what is there now. With `spared`, what was granted, it is judged as if it had not
    been held: a yes to a diff is no grant."""
    with transactions.locked():
        held, manifest = _held(transactions, run)
        try:
            return _apply(transactions, run, held, manifest, spared)
        except OSError as failure:
            error = ToolFailed(f"its changes are still held: the disk failed ({failure})")
            return Settled(manifest.changes("held", reason=error.message), error)


def _apply(
    transactions: Transactions, run: str, held: str, manifest: Manifest, spared: Sequence[str] | None
) -> Settled:
    manifest, moved = _refreshed(transactions, manifest)
    if moved:
        write_journal(held, manifest)
        against = tuple(Conflicting(path, transactions.who_changed(path, manifest)) for path in moved)
        error = conflict(moved, "it changed again since", hint=f"look at `haft diff {run}`, and apply again")
        return Settled(manifest.changes("held", against), error)
    if spared is not None:
        conflicts = [from_latin(path) for path in manifest.notes.get("conflicts", ())]
        objection = transactions.objection(manifest, f"held/{run}/upper", conflicts, spared)
        if objection is not None:
            transactions.ledger.set_state(run, "held", objection.message)
            return Settled(manifest.changes("held", tuple(map(Conflicting, conflicts)), objection.message), objection)
    if spared is None:
        manifest = replace(manifest, notes={**manifest.notes, "accepted": True})
    live = os.path.join(transactions.live, run)
    os.rename(held, live)
    try:
        upper = f"{transactions.place}/{run}/upper"
        manifest = transactions.commit(run, manifest, Mirror(upper, transactions, run))
    except Unfinished as left:
        return unfinished(manifest, left)
    except Refused as refusal:
        os.rename(live, held)
        error = conflict([refusal.path], refusal.why)
        return Settled(manifest.changes("held", (Conflicting(refusal.path),)), error)
    with contextlib.suppress(OSError):
        transactions.sweep_up(os.path.join(live, "upper"))
    transactions.finish(manifest)
    return Settled(manifest.changes("committed"))


def _refreshed(transactions: Transactions, manifest: Manifest) -> tuple[Manifest, list[str]]:
    """The change set against what is there now, and where that is something else than it was. What is the same may be
    another inode: it was put back from the store, or someone wrote it again."""
    entries: list[Altered] = []
    moved: list[str] = []
    with transactions.tree() as workspace:
        for each in manifest.entries:
            now = look(workspace, each.path, forced=True)
            same = now is None if each.before is None else each.before.is_like(now)
            if not same:
                moved.append(each.path)
            if now is not None or each.after is not None:
                entries.append(Altered(each.path, now, each.after))
    notes = {**manifest.notes, "began": time.time()} if moved else manifest.notes
    return replace(manifest, entries=tuple(entries), notes=notes), moved


def drop(transactions: Transactions, run: str) -> Changes:
    """Throw away what a run holds."""
    with transactions.locked():
        held, manifest = _held(transactions, run)
        transactions.ledger.set_state(run, "discarded")
        with contextlib.suppress(OSError):  # From here on it is dropped: `haft store prune` removes what is left of it.
            transactions.sweep_up(held)
    return manifest.changes("discarded")


def _held(transactions: Transactions, run: str) -> tuple[str, Manifest]:
    """Where the changes of a run wait, and what they are. Files that are left of dropped ones are nobody's."""
    held = os.path.join(transactions.area.held, run)
    manifest, row = Manifest.read(held), transactions.ledger.get(run)
    if manifest is None or (row is not None and row.state == "discarded"):
        raise BadUsage(f"{run} holds no changes", hint="`haft log` shows what became of it")
    return held, manifest
