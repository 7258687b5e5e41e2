"""The overlay engine: a call works in a layer above the workspace, and the layer holds the call's changes.

The cost depends on the number of changes, not on the size of the workspace; a call without changes costs two
directories.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence

from haft.changes.commit.area import identity
from haft.changes.commit.entry import UNREADABLE
from haft.changes.commit.manifest import Manifest
from haft.changes.commit.tree import Tree
from haft.changes.engines import workspace_root
from haft.changes.engines.defaults import TransactionDefaults
from haft.changes.engines.layer import LayerContents, LayerReader, TooDeep, read_large, take_stamp
from haft.changes.engines.layer_copy import replace_by_copy
from haft.changes.engines.scope import Scope, stopped_result
from haft.changes.published.views import View
from haft.changes.transactions import EndAction, Owner, TransactionResult, Transactions
from haft.contracts import Changes, Conflict, HaftError, Layer, LimitExceeded, StorageFailed, ToolFailed
from haft.files import shown


def layer_options() -> str:
    """The mount options of a layer. The overlay of an ordinary user must keep its marks in `user.` attributes; only
    root's overlay can rename directories of the workspace. With `volatile` the kernel does not sync the layer: only the
    committed files must survive a power failure."""
    if os.geteuid() == 0:
        return "redirect_dir=on,index=off,metacopy=off,volatile"
    return "userxattr,volatile"


class OverlayTransaction(TransactionDefaults):
    """The transaction of one call that works in a layer above the workspace."""

    workspace = None
    lock = None

    def __init__(
        self,
        transactions: Transactions,
        owner: Owner,
        above: Scope | None = None,
        *,
        makes_calls: bool = False,
        view: View | None = None,
    ) -> None:
        """If this call is nested in a call that works in a layer, `above` is the scope of that caller. `makes_calls`
        says that this call may make nested calls itself. `view` is the view of the call; a nested call in a layer has
        that of its caller."""
        self._above = above
        self.view = view
        self._transactions = transactions
        self._owner = owner
        name = f"{owner.run}.layer"
        self._place = os.path.join(transactions.live, name)
        self._upper = os.path.join(self._place, "upper")
        os.mkdir(self._place, 0o700)
        os.mkdir(self._upper, 0o700)
        root = os.lstat(transactions.workspace)
        self._root = root.st_dev, root.st_ino
        mine = os.stat(self._upper)
        if (root.st_uid, root.st_gid) != (mine.st_uid, mine.st_gid) and os.geteuid() == 0:
            os.chown(self._upper, root.st_uid, root.st_gid)
        os.chmod(self._upper, stat.S_IMODE(root.st_mode))
        in_area = f"{transactions.live_in_area}/{name}"
        if above is not None:
            lowers = above.finished_layers(self._place, in_area)
        else:
            lowers = () if view is None else view.lowers
        self._scope = Scope(transactions, owner.run, self._upper, lowers)
        self.scope = self._scope if makes_calls else None
        self._top = workspace_root.state_of(self._upper)
        self._began = time.time()
        self._stamp = take_stamp(self._place)
        on_view = self._scope.set_view if makes_calls else None
        self.layer = Layer(in_area, layer_options(), (mine.st_dev, mine.st_ino), lowers, view=on_view)
        self._doubt: str | None = None

    def is_untouched(self) -> bool:
        """Whether the layer is empty. It often is, because most calls only read."""
        with os.scandir(self._upper) as found:
            return next(found, None) is None

    def pause(self, granted_paths: Sequence[str]) -> HaftError | None:
        """Does nothing and returns None, because the nested call gets a copy of the layer."""
        return None

    def resume(self) -> None:
        """Nothing to do after a nested call."""

    def abandon(self) -> None:
        """End the transaction of a call that could not begin."""
        self._scope.close()
        self.drop()

    def drop(self) -> None:
        """Remove the layer in the background. Its name is free at once: the call may be repeated."""
        with contextlib.suppress(OSError):
            self._transactions.detach_and_remove(self._place)

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
        """Read the layer, then commit, hold or discard its changes. If `is_layer_open` says that a process may still
        have a file of the layer open, a copy of the layer is read and committed instead."""
        self._scope.close()
        self.stop_using_view()
        doubts = [doubt, None if workspace_root.state_of(self._upper) == self._top else workspace_root.LAYERED]
        self._doubt = "; ".join(filter(None, doubts)) or None
        if self.is_untouched():
            self._scope.drop()
            self.drop()
            self.leave_view(flushes=False)
            return TransactionResult(Changes("overlay", complete=self._doubt is None, reason=self._doubt))
        try:
            return self._finish(action, granted_paths, why, stopped, is_layer_open)
        finally:
            self.leave_view()

    def _finish(
        self,
        action: EndAction,
        granted_paths: Sequence[str],
        why: str | None,
        stopped: Callable[[], bool],
        is_layer_open: Callable[[], bool],
    ) -> TransactionResult:
        transactions = self._transactions
        try:
            if action == "discard":
                changes = self._manifest(self._read_layer(digests=False)).changes("discarded")
                self._scope.drop()
                return TransactionResult(changes)
            if is_layer_open():
                replace_by_copy(self._place)
            if self._above is not None:
                return self._within(self._above, action, granted_paths)
            most = transactions.limits.max_written_bytes
            with Tree(self._upper, forced=True) as upper:
                known = read_large(upper, most, stopped)
            with transactions.locked(stopped):
                if identity(transactions.workspace) != self._root:
                    return self._elsewhere()
                found = self._read_layer(known, stopped)
                if action == "commit" and UNREADABLE in known.values():
                    what = "its new files together are too large to be read, holes included"
                    return transactions.end_change_set(
                        self._owner,
                        self._manifest(found),
                        os.path.relpath(self._upper, transactions.area.path),
                        "hold",
                        why=what,
                        error=LimitExceeded("max_written_bytes", most, what),
                        conflicts=found.conflicts,
                    )
                return transactions.end_change_set(
                    self._owner,
                    self._manifest(found),
                    os.path.relpath(self._upper, transactions.area.path),
                    action,
                    conflicts=found.conflicts,
                    granted_paths=granted_paths,
                    judged_paths=self._scope.granted_to_calls(found.entries),
                    why=why,
                    stopped=stopped,
                    view=self.view,
                )
        except (OSError, StorageFailed) as failure:
            return self._unread(failure)
        except TooDeep:
            error = LimitExceeded(
                "max_changed_files",
                transactions.limits.max_changed_files,
                "it made directories nested too deeply",
            )
            return TransactionResult(Changes("overlay", complete=False, reason=error.message, state="discarded"), error)
        finally:
            if not transactions.has_journal(self._owner.run):
                self.drop()

    def _within(self, above: Scope, action: EndAction, granted_paths: Sequence[str]) -> TransactionResult:
        """End a nested call: merge its changes into the layer of its caller, whose scope is `above`."""
        found = self._read_layer()
        manifest = self._manifest(found)
        if action == "hold":
            self._scope.drop()
            return stopped_result(manifest)
        judged = self._scope.granted_to_calls(found.entries)
        settled = above.merge(
            self._owner, manifest, self._upper, found.conflicts, granted_paths, judged, check=self._check
        )
        if settled.changes.state == "held":
            self._scope.hand_contained_to(above)
        else:
            self._scope.drop()
        return settled

    def _unread(self, failure: Exception) -> TransactionResult:
        error = ToolFailed(f"its changes could not be read, and are not in the workspace: {failure}")
        return TransactionResult(Changes("overlay", complete=False, reason=error.message, state="discarded"), error)

    def _elsewhere(self) -> TransactionResult:
        error = Conflict(
            "the workspace directory was replaced by another one while the call ran: its changes were discarded"
        )
        return TransactionResult(Changes("overlay", complete=False, reason=error.message, state="discarded"), error)

    def _read_layer(
        self,
        known: Mapping[int, str] | None = None,
        stopped: Callable[[], bool] | None = None,
        *,
        digests: bool = True,
    ) -> LayerContents:
        transactions = self._transactions
        if self._above is None:
            seen, history = transactions.publisher.committed_tree(), transactions.history(self.view)
        else:
            seen, history = Tree(self._above.path, forced=True), None
        with seen as workspace, Tree(self._upper, forced=True) as upper:
            return LayerReader(
                workspace, upper, self._stamp, digests=digests, known=known, stopped=stopped, history=history
            ).read()

    def _manifest(self, found: LayerContents) -> Manifest:
        contained = self._scope.contained_runs()
        if self._above is None:
            self._scope.write_contained()
        reasons = [] if self._doubt is None else [self._doubt]
        if found.split_links:
            names = ", ".join(map(shown, found.split_links[:3])) + ("" if len(found.split_links) <= 3 else ", …")
            reasons.append(f"{names}: had other names too (hard links), which keep the old content")
        return Manifest(
            self._owner.run,
            self._transactions.workspace,
            "overlay",
            tuple(found.entries),
            complete=self._doubt is None,
            reason="; ".join(reasons) or None,
            notes={"began": self._began, **({"contains": contained} if contained else {})},
        )
