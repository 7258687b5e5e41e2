"""The engine of a background command: the command works on the workspace itself, and others may change it meanwhile.

The workspace is scanned before the command begins and after it ended, and only the scans hold the workspace lock. What
runs of haft committed in between is not counted. Changes that others made without haft cannot be told from those of the
command, so the change set is never complete. The changes are in the workspace already: they stay there however the
command ended, except changes of protected paths, which are reverted and held.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Final

from haft.changes.between_calls import is_like, states_left_by_runs
from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.engines.snapshot import SnapshotTransaction
from haft.changes.published.views import WaitNews
from haft.changes.transactions import EndAction, TransactionResult
from haft.contracts import HaftError
from haft.files import shown
from haft.values import replace

SCANNED: Final = (
    "it ran in the background, on the workspace itself: a scan at its end found these changes, and changes that others"
    " made meanwhile without haft are among them"
)
_MOST_NAMED: Final = 5


class BackgroundTransaction(SnapshotTransaction):
    """The transaction of a command that works on the workspace itself, beside everything else."""

    def begin(self, stopped: Callable[[], bool], report: Callable[[str], None], waiting: WaitNews) -> None:
        """Scan the workspace. The lock is released before the command begins."""
        super().begin(stopped, report, waiting)
        self._seq = self._transactions.ledger.latest()
        self.release()

    def _ended(self, action: EndAction, granted_paths: Sequence[str], why: str | None) -> TransactionResult:
        self.lock.descriptor = self._transactions.take_lock()
        return super()._ended("commit", granted_paths, why)  # It releases the lock.

    def _finish(self, action: EndAction, granted_paths: Sequence[str], why: str | None) -> TransactionResult:
        transactions, before = self._transactions, self._before
        assert before is not None
        found = self._snapshots.examine(before, transactions.workspace, self._budget, lambda: False)
        own, unknown = self._own_changes(found.changes)
        manifest = self._manifest(replace(found, changes=own), before, self._owner)
        reasons = [SCANNED]
        if unknown:
            more = f" and {len(unknown) - _MOST_NAMED:_} more" if len(unknown) > _MOST_NAMED else ""
            names = ", ".join(map(shown, unknown[:_MOST_NAMED]))
            reasons.append(f"{names}{more} changed again after another run, and cannot be undone")
        manifest = replace(manifest, complete=False, reason="; ".join(reasons))
        if not own:
            return TransactionResult(manifest.changes("none"))
        refused, error = self._refused(manifest, granted_paths)
        rest = tuple(each for each in own if each.path not in refused)
        if error is None or not refused:
            # A limit on the number of files does not revert work that others may already build on.
            self._keep(manifest)
            return TransactionResult(manifest.changes("committed"), error)
        if rest:
            owner = replace(self._owner, run=self.parts.new_name(), parent=self._owner.run)
            part = replace(manifest, run=owner.run, entries=rest, notes={**manifest.notes, "owner": owner.to_json()})
            self._keep(part)
            self.parts.manifests.append(part)
        kept = tuple(each for each in own if each.path in refused)
        return self._taken_back(replace(manifest, entries=kept), "hold", error.message, error, found)

    def _own_changes(self, found: Sequence[PathChange]) -> tuple[list[PathChange], list[str]]:
        """The changes that no run of haft explains, and the paths that also a run changed and whose former content is
        not stored."""
        own, unknown = [], []
        known = states_left_by_runs(self._transactions, self._seq)
        for each in found:
            if each.path not in known:
                own.append(each)
                continue
            state = known[each.path]
            if is_like(state, each.after):
                continue
            if self._is_stored(state):
                own.append(PathChange(each.path, state, each.after))
            else:
                unknown.append(each.path)
        return own, unknown

    def _is_stored(self, state: Entry | None) -> bool:
        if state is None or state.kind != "file":
            return True
        with contextlib.suppress(OSError):
            return bool(state.content) and self._transactions.blobs.has(state.content or "")
        return False

    def _refused(self, manifest: Manifest, granted_paths: Sequence[str]) -> tuple[set[str], HaftError | None]:
        """The paths whose changes may not stay, with everything below them, and the error that says why."""
        error = self._transactions.objections.to_commit(manifest, None, (), granted_paths)
        paths = tuple(getattr(error, "paths", ()))
        below = tuple(path.rstrip(os.sep) + os.sep for path in paths)
        return {each.path for each in manifest.entries if each.path in paths or each.path.startswith(below)}, error
