"""After a host was killed: its commits are finished or taken back, its layers thrown away. Only under its lock."""

from __future__ import annotations

import os
from collections.abc import Callable

from haft.changes.area import known_areas, remove
from haft.changes.commit import resume, undo_unsound
from haft.changes.manifest import Manifest
from haft.changes.transactions import UNSYNCED, Owner, Transactions, boot

Tell = Callable[[str, str], None]
"""A run, and what became of its changes."""


def recover(make: Callable[[str, str], Transactions], home: str, host: str, tell: Tell) -> None:
    """Clean up after one dead host, in every workspace. `make` opens the transactions of a workspace in its name."""
    for area in known_areas(home):
        live = os.path.join(area.live, host)
        if not os.path.isdir(live):
            continue
        transactions = make(area.workspace, host)
        try:
            if os.path.isdir(area.workspace):
                with transactions.locked():
                    names = sorted(os.listdir(live))
                    recover_left(transactions, tell)
                    for name in reversed(names):
                        if name.endswith(UNSYNCED):
                            _recover_unsynced(transactions, name.removesuffix(UNSYNCED), tell)
                remove(live)
        finally:
            transactions.close()


def recover_left(transactions: Transactions, tell: Tell) -> None:
    """See to the commits that one host left half done in one workspace. Call it under the lock."""
    for name in sorted(os.listdir(transactions.live)):
        if not name.endswith((".layer", UNSYNCED)):
            _recover_run(transactions, name, tell)


def _recover_run(transactions: Transactions, run: str, tell: Tell) -> None:
    full = os.path.join(transactions.live, run)
    manifest = Manifest.read(full)
    if manifest is None:
        transactions.clear_stations(run)  # It was killed before it had begun.
        remove(full)
        return
    notes = manifest.notes
    finished = notes.get("mark") == "commit" and resume(transactions.area, f"{transactions.place}/{run}", manifest)
    if finished and "then" not in notes:
        transactions.finish(manifest)
        tell(run, "its changes were being committed: the commit was finished")
        return
    if notes.get("verb") != "call":
        transactions.discard_out(run)
        remove(full)
        tell(run, "it was being done when its host was killed: it was taken back")
        return
    if finished:  # Taken back while it ran in the workspace itself: now it waits.
        entries = tuple(each.reversed() for each in manifest.entries)
        manifest = Manifest(
            run, manifest.workspace, manifest.engine, entries, manifest.complete, manifest.reason, notes
        )
    _hold(transactions, run, manifest)
    tell(run, "its changes are held, and none of them is in the workspace")


def _recover_unsynced(transactions: Transactions, run: str, tell: Tell) -> None:
    """A commit that was over, and not yet on the disk: where the machine went down meanwhile, its files may be empty."""
    with open(os.path.join(transactions.live, f"{run}{UNSYNCED}")) as file:
        if file.read() == boot():
            return
    manifest = Manifest.read(os.path.join(transactions.area.kept, run))
    if manifest is None:
        return
    transactions.enlist(manifest)  # The list may have been lost too.
    if not undo_unsound(transactions.area, manifest):
        return
    before = {"undo": "committed", "redo": "undone"}.get(manifest.notes["verb"])
    transactions.ledger.set_state(run, "discarded", "the power failed before its files were on the disk")
    for other in manifest.notes.get("reverses", ()):
        transactions.ledger.set_state(other, before)  # type: ignore[arg-type]
    tell(run, "the power failed before its changes were on the disk: they were taken back")


def _hold(transactions: Transactions, run: str, manifest: Manifest) -> None:
    full = os.path.join(transactions.live, run)
    layer = os.path.join(transactions.live, f"{run}.layer", "upper")
    upper = os.path.join(full, "upper")
    if os.path.isdir(layer) and not os.path.isdir(upper):
        os.rename(layer, upper)
    notes = {name: value for name, value in manifest.notes.items() if name not in ("steps", "opened", "then")}
    manifest = Manifest(
        run, manifest.workspace, manifest.engine, manifest.entries, manifest.complete, manifest.reason, notes
    )
    owner = notes["owner"]
    transactions.hold(
        Owner(run, owner["who"], owner["thread"], owner["parent"]),
        manifest,
        f"{transactions.place}/{run}/upper",
        notes.get("why") or "its host was killed while it was committed",
    )
