"""Recovery after a host was killed: finish or revert its commits, and remove its layers.

The caller must hold the lock of the dead host, so that no two processes recover it at the same time.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from haft.changes.commit.area import boot_id, known_areas, remove
from haft.changes.commit.journal import OUT, resume, revert_unsynced, write_journal
from haft.changes.commit.manifest import Manifest
from haft.changes.commit.tree import Tree, set_mode
from haft.changes.commit.widened_modes import NOTE_SUFFIX, TEMPORARY_ERRORS, read_notes
from haft.changes.transactions import UNSYNCED, Owner, Transactions
from haft.contracts import StorageFailed
from haft.values import replace

Report = Callable[[str, str], None]
"""Receives a run and a sentence about its changes."""


def recover(make: Callable[[str, str], Transactions], home: str, host: str, report: Report) -> None:
    """Clean up after the dead host `host`, in every workspace. `make` takes a workspace and the host, and opens the
    transactions that this host had there. `home` is the state home's directory for all workspaces."""
    for area in known_areas(home):
        live = os.path.join(area.live, host)
        if not os.path.isdir(live):
            continue
        transactions = make(area.workspace, host)
        try:
            if os.path.isdir(area.workspace):
                with transactions.locked():
                    names = sorted(os.listdir(live))
                    transactions.publisher.flush(force=any(name in transactions.published_runs() for name in names))
                    recover_left_commits(transactions, report)
                    for name in reversed(names):
                        if name.endswith(UNSYNCED):
                            _recover_unsynced(transactions, name.removesuffix(UNSYNCED), report)
                remove(live)
        finally:
            transactions.close()


def recover_left_commits(transactions: Transactions, report: Report) -> None:
    """Finish or revert the unfinished commits of one host in one workspace. Call it under the workspace lock."""
    _restore_modes(transactions.live)
    published = transactions.published_runs()
    for name in sorted(os.listdir(transactions.live)):
        if not name.endswith((".layer", UNSYNCED, NOTE_SUFFIX)) and name not in published:
            try:
                _recover_run(transactions, name, report)
            except (OSError, StorageFailed) as error:
                if isinstance(error, StorageFailed) or error.errno in TEMPORARY_ERRORS:
                    raise  # The error may pass: leave everything in place for the next attempt.
                _save(transactions, name)
                report(name, f"its commit cannot be recovered ({error}); its files are in {transactions.area.saved}")
            except Exception as error:  # One damaged journal must not block the recovery of the other runs.
                _save(transactions, name)
                report(
                    name,
                    f"its journal cannot be understood ({error}); its files are in {transactions.area.saved}",
                )


def _restore_modes(live: str) -> None:
    """Restore the modes that the dead host had widened for a moment. This comes first, because the steps of recovery
    may set other modes."""
    for root, path, mode, inode in read_notes(live):
        with contextlib.suppress(OSError), Tree(root, forced=True) as tree:
            found = tree.status(path)
            wider = found is not None and stat.S_IMODE(found.st_mode) & ~mode
            if found is not None and found.st_ino == inode and wider and not wider & ~0o700:
                set_mode(tree, path, mode)
                tree.widened.pop(path, None)


def _recover_run(transactions: Transactions, run: str, report: Report) -> None:
    full = os.path.join(transactions.live, run)
    manifest = Manifest.read(full)
    if manifest is None:
        transactions.staging.clear(run)
        if os.path.isdir(os.path.join(full, OUT)) and os.listdir(os.path.join(full, OUT)):
            raise ValueError("its journal is damaged")
        remove(full)  # The host was killed before the first step.
        return
    notes = manifest.notes
    finished = notes.get("mark") == "commit" and resume(
        transactions.area, f"{transactions.live_in_area}/{run}", manifest
    )
    if finished and "then" not in notes:
        transactions.finish(manifest)
        report(run, "its changes were being committed: the commit was finished")
        return
    if notes.get("verb") != "call":
        transactions.clear_displaced(run)
        remove(full)
        report(run, "its host was killed in the middle: it was reverted")
        return
    if "then" in notes:  # The call ran in the workspace itself, and its changes were being reverted.
        entries = tuple(each.reversed() for each in manifest.entries)
        notes = {name: value for name, value in notes.items() if name not in ("opened", "then")}
        mark = "held" if finished else "commit"
        manifest = replace(manifest, entries=entries, notes={**notes, "mark": mark, "steps": []})
        write_journal(full, manifest)  # Before anything moves, so that nobody takes the old journal's steps again.
        if not finished:
            transactions.finish(manifest)
            report(run, "its changes could not be reverted: the commit was finished")
            return
    _hold(transactions, run, manifest)
    report(run, "its changes are held, and none of them is in the workspace")


def _save(transactions: Transactions, run: str) -> None:
    os.makedirs(transactions.area.saved, mode=0o700, exist_ok=True)
    with contextlib.suppress(OSError):
        os.rename(os.path.join(transactions.live, run), os.path.join(transactions.area.saved, run))


def _recover_unsynced(transactions: Transactions, run: str, report: Report) -> None:
    """Check a commit whose files were not synced to disk when the host ended. If the power failed since, these files
    may be empty: then the commit is reverted."""
    with open(os.path.join(transactions.live, f"{run}{UNSYNCED}")) as file:
        if file.read() == boot_id():
            return
    manifest = Manifest.read(os.path.join(transactions.area.kept, run))
    if manifest is None:
        return
    transactions.add_to_ledger(manifest)  # The power failure may have lost the ledger's row too.
    if not revert_unsynced(transactions.area, manifest):
        return
    before = {"undo": "committed", "redo": "undone"}.get(manifest.notes["verb"])
    transactions.ledger.set_state(run, "discarded", "the power failed before its files were on the disk")
    for other in manifest.notes.get("reverses", ()):
        transactions.ledger.set_state(other, before)  # type: ignore[arg-type]
    report(run, "the power failed before its changes were on the disk: they were reverted")


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
        f"{transactions.live_in_area}/{run}/upper",
        notes.get("why") or "its host was killed while it was committed",
    )


def take_back_published(transactions: Transactions, run: str, report: Report) -> None:
    """Hold the changes of a run that were published and that could not be written into the workspace, because somebody
    else changed one of the files meanwhile. An undo or redo is taken back."""
    full = os.path.join(transactions.live, run)
    manifest = Manifest.read(full)
    assert manifest is not None
    if manifest.notes.get("verb") == "call":
        why = "somebody else changed one of its files before the commit reached the workspace"
        _hold(transactions, run, replace(manifest, notes={**manifest.notes, "why": why}))
        report(run, f"its changes are held: {why}")
        return
    before = {"undo": "committed", "redo": "undone"}[manifest.notes["verb"]]
    transactions.ledger.set_state(run, "discarded", "somebody else changed one of its files at the same moment")
    for other in manifest.notes.get("reverses", ()):
        transactions.ledger.set_state(other, before)  # type: ignore[arg-type]
    transactions.clear_displaced(run)
    remove(full)
    report(run, "it was taken back: somebody else changed one of its files at the same moment")
