"""The declared engine, for tools in this process that write files through the `Workspace` object that haft gives them.

The writes of such a tool wait in the area until the call ends, and are then committed like other changes. Until then,
only the tool itself sees them.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final

from haft.changes.commit.area import identity, remove
from haft.changes.commit.attributes import CAPABILITIES, set_attributes, without_names
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.engines.defaults import TransactionDefaults
from haft.changes.engines.scope import Scope, stopped_result
from haft.changes.nested_calls import CallerParts
from haft.changes.objections import batch_conflict, order_conflict
from haft.changes.published.views import View
from haft.changes.transactions import EndAction, Owner, TransactionResult, Transactions
from haft.contracts import Changes, Conflict, HaftError, LimitExceeded, StorageFailed, Workspace, WrittenFile
from haft.files import translate_errors
from haft.values import replace

NOT_ALL: Final = "it runs in this process, and may have changed other files by itself"


class DeclaredTransaction(TransactionDefaults):
    """The transaction of one call, and the `Workspace` that its tool writes through."""

    layer = None
    lock = None

    def __init__(
        self,
        transactions: Transactions,
        owner: Owner,
        workspace: Workspace,
        *,
        complete: bool,
        scope: Scope | None = None,
        view: View | None = None,
        seen: Workspace | None = None,
    ) -> None:
        """`complete` says that the tool changes files only through this object. If the call is nested in a call that
        works in a layer, `scope` is the scope of that caller, and `workspace` is the workspace as the caller sees
        it. `view` is the view of the call, and `seen` the workspace as the view shows it."""
        self.scope = scope
        self.view = view
        self._transactions = transactions
        self._owner = owner
        self._inner = workspace if seen is None else seen
        self._own_files = workspace
        self._complete = complete
        self.parts = CallerParts()
        self._written: dict[str, PathChange] = {}
        self._expected: dict[str, Any] = {}
        self._place: str | None = None
        self._lock = threading.Lock()
        self._began = time.time()
        self._root = identity(transactions.workspace)

    # The `Workspace` interface.

    @property
    def root(self) -> str:
        return self._inner.root

    def open(self, path: str) -> BinaryIO:
        if self._written and (where := self._inner.locate(path)) in self._written:
            assert self._place is not None
            return open(os.path.join(self._place, "upper", where), "rb")
        return self._inner.open(path)

    def open_directory(self, path: str) -> int:
        return self._inner.open_directory(path)

    def show(self, seen: Workspace) -> None:
        """From now on, the tool sees the workspace as `seen` shows it."""
        self._inner = seen

    def identity(self, path: str) -> Any:
        """The identity of the file that the tool sees, and that of the workspace's own file; None if the tool sees no
        file."""
        seen = self._inner.identity(path)
        return None if seen is None else (seen, self._own_identity(path))

    def _own_identity(self, path: str) -> Any:
        try:
            return self._own_files.identity(path)
        except HaftError:
            return None  # In the own files, a directory of the path may be a file, or a link that leads out.

    def locate(self, path: str) -> str:
        return self._inner.locate(path)

    def seen_at(self, place: str, *, is_readonly: bool = False) -> Workspace:
        return self._inner.seen_at(place, is_readonly=is_readonly)

    def prepare(self, path: str, *, expect: Any = None) -> WrittenFile:
        # The files of a view do not change. Only their ctimes do, when a layer is flushed.
        is_view = self._inner is not self._own_files
        return self._inner.prepare(path, expect=None if expect is None or is_view else expect[0])

    def replace(self, path: str, content: bytes, *, expect: Any = None) -> WrittenFile:
        """Write a whole file. The write is checked now, and reaches the workspace when the call ends."""
        with self._lock, translate_errors(path, "written"):
            return self._stage(path, content, expect)

    def _stage(self, path: str, content: bytes, expect: Any) -> WrittenFile:
        prepared = self.prepare(path, expect=expect)
        own = self._own_identity(path) if expect is None else expect[1]
        if self.scope is not None:
            seen = self._inner.identity(path) if expect is None else expect[0]
            # `prepare` opened the file for writing, so the overlay copied the file into the caller's layer. If only its
            # ctime differs from what the tool expects, nobody changed it.
            now = self._inner.identity(path)
            own = now if now is not None and seen is not None and now[:-1] == seen[:-1] else seen
        where = prepared.path
        most = self._transactions.limits.max_files_per_call
        if most and where not in self._written and len(self._written) >= most:
            raise LimitExceeded("max_files_per_call", most, f"it would write more than {most} files")
        upper = self._upper()
        target = os.path.join(upper, where)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with self._tree() as workspace, Tree(upper) as ours:
            before = read_entry(workspace, where)
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view) :]
                if before is not None:
                    if (before.uid, before.gid) != (os.geteuid(), os.getegid()) and os.geteuid() == 0:
                        os.fchown(descriptor, before.uid, before.gid)
                    set_attributes(descriptor, without_names(before.attributes, CAPABILITIES))
                    # Nobody granted new content the privilege of set-user-id. The kernel drops it on a write, too.
                    os.fchmod(descriptor, before.mode & ~(stat.S_ISUID | stat.S_ISGID))
                else:
                    os.fchmod(descriptor, 0o666 & ~_umask())
            finally:
                os.close(descriptor)
            for made in prepared.directories:
                os.chmod(os.path.join(upper, made), 0o777 & ~_umask())
                if made not in self._written:
                    self._written[made] = PathChange(made, None, read_entry(ours, made))
            self._written[where] = PathChange(where, before, read_entry(ours, where))
            self._expected.setdefault(where, own)
        return prepared

    def _tree(self) -> Tree:
        """The committed state; for a nested call, the workspace as its caller sees it."""
        return self._transactions.publisher.committed_tree() if self.scope is None else Tree(self.scope.path)

    def _upper(self) -> str:
        if self._place is None:
            self._place = os.path.join(self._transactions.live, f"{self._owner.run}.layer")
            os.makedirs(os.path.join(self._place, "upper"), mode=0o700)
        return os.path.join(self._place, "upper")

    # The `Transaction` interface.

    @property
    def workspace(self) -> Workspace:
        return self

    def is_untouched(self) -> bool:
        return not self._written

    def pause(self, granted_paths: Sequence[str]) -> HaftError | None:
        """Commit the writes so far as a part (see `nested_calls`), so that a nested call sees them. If that fails,
        returns the error, and the writes wait as before; otherwise returns None."""
        with self._lock:
            if not self._written or self._place is None:
                return None
            owner = replace(self._owner, run=self.parts.new_name(), parent=self._owner.run)
            manifest = replace(self._manifest(), run=owner.run)
            if self.scope is not None:
                settled = self.scope.merge(
                    owner, manifest, self._upper(), self._moved(), granted_paths, check=self._check
                )
                if settled.error is None:
                    self._begin_anew(manifest)
                return settled.error
            with self._transactions.locked():
                moved = self._moved()
                manifest = self._as_committed(manifest, moved)
                self._place = self._renamed(self._place, owner.run)
                upper = os.path.relpath(os.path.join(self._place, "upper"), self._transactions.area.path)
                error = order_conflict(manifest.entries, self.view, self._transactions.publisher.register)
                error = error or self._batch_conflict(manifest)
                error = error or self._transactions.objections.to_commit(manifest, upper, moved, granted_paths)
                error = error or self._transactions.commit_part(
                    owner, manifest, upper, accepted=len(granted_paths) > 1, view=self.view
                )
            if error is not None and not self._transactions.has_journal(owner.run):
                self._place = self._renamed(self._place, self._owner.run)
            elif error is None:
                self._begin_anew(manifest)
                if self.view is not None:
                    self.view.own.append(owner.run)
            return error

    def _renamed(self, place: str, run: str) -> str:
        """Let the staged files belong to `run`, so that the next ones of this call get a place of their own."""
        renamed = os.path.join(self._transactions.live, f"{run}.layer")
        os.rename(place, renamed)
        return renamed

    def _begin_anew(self, part: Manifest) -> None:
        assert self._place is not None
        self.parts.manifests.append(part)
        if not self._transactions.has_journal(part.run):  # Otherwise the part is published, and its files wait there.
            remove(self._place)
        self._place = None
        self._written.clear()
        self._expected.clear()

    def resume(self) -> None:
        """Nothing to do after a nested call."""

    def _moved(self) -> list[str]:
        """The paths that someone else changed since the tool wrote them through this object."""
        if self.scope is not None:
            return [path for path, seen in self._expected.items() if self._inner.identity(path) != seen]
        history = self._transactions.history(self.view)
        files = [each for each in self._written.values() if each.after is None or not each.after.is_directory]
        found = dict.fromkeys(history.conflicts(files))
        with self._transactions.tree() as workspace:
            for path, own in self._expected.items():
                if self._own_identity(path) == own or history.is_own(path, workspace.status(path)):
                    continue
                # Another call may have changed the file, and haft has put it back: then only the ctime differs.
                before = self._written[path].before if path in self._written else None
                if before is None or before.kind != "file" or not before.is_like(read_entry(workspace, path)):
                    found[path] = None
        return list(found)

    def _as_committed(self, manifest: Manifest, moved: Sequence[str]) -> Manifest:
        """The change set, with the committed state of each path as the state before the change: a directory may be
        there now, and a flush changes the times of files."""
        entries = []
        with self._tree() as committed:
            for each in manifest.entries:
                before = each.before if each.path in moved else read_entry(committed, each.path)
                is_there = before is not None and before.is_directory
                if not (is_there and each.after is not None and each.after.is_directory):
                    entries.append(replace(each, before=before))
        return replace(manifest, entries=tuple(entries))

    def _manifest(self) -> Manifest:
        entries = tuple(sorted(self._written.values(), key=lambda each: os.fsencode(each.path)))
        reason = None if self._complete else NOT_ALL
        notes = {"began": self._began}
        return Manifest(
            self._owner.run, self._transactions.workspace, "declared", entries, self._complete, reason, notes
        )

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
        """Commit, hold or discard the writes."""
        self.stop_using_view()
        try:
            settled = self._ended(action, granted_paths, why, stopped)
        finally:
            self.leave_view(flushes=bool(self._written))
        return replace(settled, changes=self.parts.with_parts(settled.changes))

    def _ended(
        self, action: EndAction, granted_paths: Sequence[str], why: str | None, stopped: Callable[[], bool]
    ) -> TransactionResult:
        if not self._written or self._place is None:
            engine = "declared" if self._complete else "none"
            reason = None if self._complete else NOT_ALL
            return TransactionResult(Changes(engine, complete=self._complete, reason=reason))  # type: ignore[arg-type]
        transactions, manifest = self._transactions, self._manifest()
        try:
            if action == "discard":
                return TransactionResult(manifest.changes("discarded"))
            if self.scope is not None:
                if action == "hold":
                    return stopped_result(manifest)
                return self.scope.merge(
                    self._owner, manifest, self._upper(), self._moved(), granted_paths, check=self._check
                )
            with transactions.locked(stopped):
                if identity(transactions.workspace) != self._root:
                    error = Conflict(
                        "the workspace directory was replaced by another one while the call ran; nothing was written"
                    )
                    return TransactionResult(manifest.changes("discarded", reason=error.message), error)
                moved = self._moved()
                committed = self._as_committed(manifest, moved)
                return transactions.end_change_set(
                    self._owner,
                    committed,
                    os.path.relpath(os.path.join(self._place, "upper"), transactions.area.path),
                    action,
                    conflicts=moved,
                    granted_paths=granted_paths,
                    why=why,
                    error=self._batch_conflict(committed) if action == "commit" else None,
                    stopped=stopped,
                    view=self.view,
                )
        except (OSError, StorageFailed) as failure:
            return transactions.disk_failure(manifest, failure)
        finally:
            if not transactions.has_journal(self._owner.run):
                remove(self._place)

    def _batch_conflict(self, manifest: Manifest) -> HaftError | None:
        """The error if the order of a batch forbids the commit of a call that has no view, because its caller has the
        workspace alone."""
        return None if self.view is not None else batch_conflict(manifest.entries, self._check)


def _umask() -> int:
    """The umask, if possible read from `/proc`: `os.umask` would change it for a moment, also for other threads."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    return _umask_by_setting()


def _umask_by_setting() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
