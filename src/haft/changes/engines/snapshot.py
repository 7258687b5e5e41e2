"""The snapshot engine: a call changes the workspace itself, and holds the workspace lock meanwhile.

The changes are found by comparing the whole workspace before and after the call. If the changes may not stay in the
workspace, they are reverted and held like the changes of any other call. A session process is a process that a tool
keeps running between its calls.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal

from haft.changes.between_calls import WatchedSession, WorkspaceAfterCall, unexplained_paths, with_paths_between
from haft.changes.commit.area import filesystem, mounts_inside, remove
from haft.changes.commit.images import Images
from haft.changes.commit.journal import CommitRefused, CommitUnfinished, write_journal
from haft.changes.commit.manifest import Manifest
from haft.changes.commit.rebuild import Rebuilder
from haft.changes.commit.steps import as_latin
from haft.changes.commit.widened_modes import WidenedModes
from haft.changes.engines import workspace_root
from haft.changes.engines.defaults import TransactionDefaults
from haft.changes.nested_calls import SHARED, CallerParts, Lock
from haft.changes.objections import batch_conflict
from haft.changes.published.views import WaitNews
from haft.changes.reversal_plan import ReversalPlan, ReversalSources, hard_links_in
from haft.changes.snapshots.comparison import changes_between
from haft.changes.snapshots.snapshot import Comparison, OverBudget, Snapshot, Snapshots
from haft.changes.transactions import EndAction, Owner, TransactionResult, Transactions, unfinished_result
from haft.contracts import Changes, HaftError, ToolFailed
from haft.files import shown, sync_filesystem
from haft.values import replace

_WRITE_BACK: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs"})
"""Filesystems that change a file's times at the first write through a memory mapping after its pages were written
back."""

_SHORT_WAIT: Final = 0.02
"""A call that waits no longer than this for the workspace does not say so."""


class SnapshotTransaction(TransactionDefaults):
    """The transaction of one call in the workspace itself."""

    covers_others = True

    layer = None
    workspace = None
    scope = None

    def __init__(
        self,
        transactions: Transactions,
        owner: Owner,
        budget: int,
        why: str | None = None,
        watched: WatchedSession | None = None,
    ) -> None:
        """`budget` is how many bytes the store may hold. `why` says why no overlay is used, if the setting would allow
        one. `watched` is the session process of the tool, if any."""
        self._transactions = transactions
        self._why = why
        self._owner = owner
        self._budget = budget
        self._snapshots = snapshots_of(transactions)
        self.lock = Lock()
        self.parts = CallerParts()
        self._before: Snapshot | None = None
        self._after: Snapshot | None = None
        self._watched = watched
        self._seq = 0
        self._left: WorkspaceAfterCall | None = None
        self._between: list[str] = []
        self._top: tuple[int, str | None] | None = None
        self._unseen: str | None = None
        """Why a session process may have changed files without changing their times; None if it cannot."""
        self._began = time.time()

    def begin(self, stopped: Callable[[], bool], report: Callable[[str], None], waiting: WaitNews) -> None:
        """Take the workspace lock and a snapshot. If another call has the workspace meanwhile, `waiting` is told so.
        Raises `ToolFailed` if the workspace holds more than the store may keep."""
        transactions = self._transactions
        since = time.monotonic()

        def gives_up() -> bool:
            if time.monotonic() - since > _SHORT_WAIT:
                transactions.publisher.views.tell_holder(waiting)
            return stopped()

        self.lock.descriptor = transactions.take_lock(gives_up)
        try:
            if SHARED.get() is None:  # Otherwise the caller has the workspace alone.
                self.lock.views = transactions.publisher.take_alone(self._owner.run, stopped)
            self.lock.is_alone = True
            self._top = workspace_root.state_of(transactions.workspace)
            self._unseen = self._write_back_pages()
            self._before = self._snapshots.take(transactions.workspace, self._budget, stopped, report)
            transactions.blobs.sync()
            self._find_changes_between(self._before)
        except OverBudget as error:
            self.abandon()
            largest = ", ".join(f"{shown(path)} ({size / 1e6:,.0f} MB)" for path, size in error.largest[:3])
            raise ToolFailed(
                f"changes here cannot be tracked: {error.needed / 1e6:,.0f} MB would have to be stored first"
                f" ({largest}), and the store may hold {error.budget / 1e6:,.0f} MB",
                hint="raise `changes.store_bytes`, move large files out of the workspace, or set"
                ' `changes.engine = "off"` and work without undo',
            ) from error
        except BaseException:
            self.abandon()
            raise

    def _write_back_pages(self) -> str | None:
        """Write all changed pages of the workspace's files to disk. Snapshots find changes by the times of files. But
        if a session process writes through a memory mapping, only the first write to a page after the page was written
        to disk changes the times. Returns the reason if some writes may still go unnoticed, otherwise None."""
        if self._watched is None or sys.platform != "linux":
            return None
        unfit = []
        for path in (self._transactions.workspace, *mounts_inside(self._transactions.workspace)):
            with contextlib.suppress(OSError):
                _write_back(path)
            if (kind := filesystem(path)) not in _WRITE_BACK:
                unfit.append(kind)
        if not unfit:
            return None
        return (
            f"on {', '.join(dict.fromkeys(unfit))}, writes through a memory mapping may not change the times of a file"
        )

    def _find_changes_between(self, before: Snapshot) -> None:
        """Find the changes since the last call of the session process."""
        if self._watched is None:
            return
        self._left = self._watched.take()
        self._seq = self._transactions.ledger.latest()
        if self._left is not None:
            found = changes_between(self._left.snapshot, before)
            self._between = unexplained_paths(self._transactions, self._left, found)

    def abandon(self) -> None:
        """Give up before the call begins: release the lock, and keep the notes about the session's last call."""
        if self._watched is not None and self._left is not None:
            self._watched.keep(self._left)
        self.release()

    def is_untouched(self) -> bool:
        """Always False: only `finish`, which compares the whole workspace, can tell."""
        return False

    def release(self) -> None:
        self.lock.release()

    def pause(self, granted_paths: Sequence[str]) -> HaftError | None:
        """Commit the changes so far as a part (see `nested_calls`), because a nested call may change the workspace too.
        Returns the error if that is not possible, otherwise None."""
        transactions, before = self._transactions, self._before
        assert before is not None
        self._write_back_pages()
        found = self._snapshots.examine(before, transactions.workspace, self._budget, lambda: False)
        if found.changes:
            owner = replace(self._owner, run=self.parts.new_name(), parent=self._owner.run)
            manifest = self._manifest(found, before, owner)
            error = self._objection(manifest, granted_paths)
            if error is not None:
                return error
            self._keep(manifest)
            self.parts.manifests.append(manifest)
        self._before = found.after
        return None

    def resume(self) -> None:
        """Take a new snapshot after a nested call: later changes are this call's own."""
        self._before = self._snapshots.take(
            self._transactions.workspace, self._budget, lambda: False, lambda _message: None
        )
        self._transactions.blobs.sync()

    def finish(
        self,
        action: EndAction,
        *,
        granted_paths: Sequence[str] = (),
        why: str | None = None,
        stopped: Callable[[], bool],
        doubt: str | None = None,
        is_layer_open: Callable[[], bool] = lambda: False,
    ) -> TransactionResult:
        """Find the changes, then commit, hold or discard them."""
        settled = self._ended(action, granted_paths, why)
        settled = replace(settled, changes=self.parts.with_parts(settled.changes))
        return (
            replace(settled, changes=with_paths_between(settled.changes, self._between)) if self._between else settled
        )

    def _ended(self, action: EndAction, granted_paths: Sequence[str], why: str | None) -> TransactionResult:
        try:
            return self._finish(action, granted_paths, why)
        except (OSError, RecursionError, ValueError) as error:
            # The call changed the workspace itself: the result must not say that nothing happened.
            failure = ToolFailed(
                f"the changes of the call could not be read ({error}): they are in the workspace and cannot be undone",
                hint="look at the workspace before you continue",
            )
            return TransactionResult(
                Changes("snapshot", complete=False, reason=failure.message, state="committed"), failure
            )
        finally:
            # If the changes could not be read, or were reverted, there is no `_after`.
            left = self._after or self._before
            if self._watched is not None and left is not None:
                self._watched.keep(WorkspaceAfterCall(self._owner.run, left, self._seq))
            self.release()

    def _finish(self, action: EndAction, granted_paths: Sequence[str], why: str | None) -> TransactionResult:
        transactions, before = self._transactions, self._before
        assert before is not None
        self._write_back_pages()
        found = self._snapshots.examine(before, transactions.workspace, self._budget, lambda: False)
        manifest = self._manifest(found, before, self._owner)
        if not found.changes:
            self._after = found.after
            return TransactionResult(manifest.changes("none"))
        error = None
        if action == "commit":
            error = self._objection(manifest, granted_paths)
        if action == "commit" and error is None:
            self._keep(manifest)
            self._after = found.after
            return TransactionResult(manifest.changes("committed"))
        return self._taken_back(manifest, action, why if error is None else error.message, error, found)

    def _objection(self, manifest: Manifest, granted_paths: Sequence[str]) -> HaftError | None:
        """The error if the changes may not stay in the workspace without a person's decision; otherwise None."""
        objections = self._transactions.objections
        return objections.to_commit(manifest, None, (), granted_paths) or batch_conflict(manifest.entries, self._check)

    def _taken_back(
        self, manifest: Manifest, action: EndAction, reason: str | None, error: HaftError | None, found: Comparison
    ) -> TransactionResult:
        """Revert a change set that is in the workspace, then hold or discard it."""
        transactions = self._transactions
        try:
            upper = revert_changes(transactions, self._owner.run, manifest, self.lock)
        except CommitUnfinished as left:
            # The unfinished commit is the one that reverts the call's changes: if it gets finished, they are held.
            other: Literal["committed", "taken back"] = "taken back" if left.becomes == "committed" else "committed"
            return unfinished_result(manifest, CommitUnfinished(left.path, left.why, other))
        except (CommitRefused, OSError, RecursionError, ValueError) as refusal:
            self._after = found.after
            self._keep(manifest)  # The changes are in the workspace, and can be undone once the problem is solved.
            failure = ToolFailed(
                f"the changes may not stay ({reason}), and could not be reverted: {refusal}",
                hint=f"they are in the workspace: look at `haft diff {self._owner.run}`",
            )
            return TransactionResult(manifest.changes("committed", reason=failure.message), failure)
        if action == "discard":
            remove(os.path.join(transactions.live, self._owner.run))
            if transactions.has_journal(self._owner.run):
                return transactions.disk_failure(manifest, OSError("the changes could not be removed"))
            remove(os.path.join(transactions.live, f"{self._owner.run}.layer"))
            return TransactionResult(manifest.changes("discarded"))
        return transactions.end_held(self._owner, manifest, upper, reason, error=error)

    def _manifest(self, found: Comparison, before: Snapshot, owner: Owner) -> Manifest:
        unread = [*dict.fromkeys([*before.unreadable, *found.unreadable])]
        is_top_changed = workspace_root.state_of(self._transactions.workspace) != self._top
        return Manifest(
            owner.run,
            self._transactions.workspace,
            "snapshot",
            tuple(found.changes),
            complete=not unread and not is_top_changed and self._unseen is None,
            reason=self._reason(unread, is_top_changed=is_top_changed),
            notes={
                "began": self._began,
                "owner": owner.to_json(),
                "verb": "call",
                "linked": {side: [list(map(as_latin, each)) for each in some] for side, some in found.linked.items()},
            },
        )

    def _reason(self, unread: Sequence[str], *, is_top_changed: bool) -> str | None:
        reasons = [f"no overlay: {self._why}"] if self._why is not None else []
        if self._unseen is not None:
            reasons.append(self._unseen)
        if is_top_changed:
            reasons.append(workspace_root.IN_PLACE)
        if unread:
            reasons.insert(0, f"{', '.join(map(shown, unread[:3]))} could not be read")
        return "; ".join(reasons) or None

    def _keep(self, manifest: Manifest) -> None:
        """Write the journal and the ledger entry for changes that are already in the workspace."""
        full = os.path.join(self._transactions.live, manifest.run)
        os.makedirs(full, mode=0o700, exist_ok=True)
        self._transactions.blobs.sync()
        write_journal(full, replace(manifest, notes={**manifest.notes, "mark": "commit", "steps": []}))
        if self.lock.is_alone:
            self._transactions.publisher.record_at_once(manifest)
        self._transactions.finish(manifest)


def _write_back(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        sync_filesystem(descriptor)
    finally:
        os.close(descriptor)


def snapshots_of(transactions: Transactions) -> Snapshots:
    """The object that takes snapshots of the workspace. Only the holder of the workspace lock may use it."""
    return Snapshots(os.path.dirname(transactions.area.lock), transactions.blobs, WidenedModes(transactions.live))


def revert_changes(transactions: Transactions, run: str, manifest: Manifest, lock: Lock) -> str:
    """Revert a change set that is in the workspace, and move the call's new files to the directory that would hold them
    if the call had worked in a layer. Returns that directory, relative to the area."""
    layer = f"{transactions.live_in_area}/{run}.layer"
    upper = f"{layer}/upper"
    os.makedirs(os.path.join(transactions.area.path, upper), mode=0o700, exist_ok=True)
    plan = ReversalPlan("undo", [], entries=[each.reversed() for each in manifest.entries])
    plan.linked_names.update(hard_links_in(manifest, "before"))
    rebuilder = Rebuilder(transactions.area.path, f"{layer}/in", transactions.blobs)
    images = Images(transactions.area, transactions.blobs)
    try:
        with transactions.tree() as workspace:
            sources = ReversalSources(
                images,
                workspace,
                plan,
                lambda _path: (),
                rebuilder,
                lambda place, path: transactions.staging.make_renamable(run, place, path),
                lambda known, path: transactions.staging.make_hard_link(run, known, path),
            )
            back = replace(manifest, entries=tuple(plan.entries), notes={**manifest.notes, "then": "hold"})
            transactions.commit(run, back, sources, mirror=upper, lock=lock)
    finally:
        images.close()
        rebuilder.close()
    return upper  # The caller replaces or removes the journal: a crash before that must not lose the new files.
