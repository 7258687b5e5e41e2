"""The scope of a call that works in a layer: what its nested calls see and change.

    the workspace ◄─ finished layers ◄─ the caller's layer, in use
                            ▲                  │ a copy, finished
                            └──────────────────┴──► the nested call is mounted over these, below a layer of its own

The caller's view is the workspace as the caller sees it: with the caller's own changes. A nested call sees the same
view. A layer in use must not be mounted a second time: so haft copies the caller's layer when the nested call begins,
and puts the copy under a new layer for the nested call. When the nested call ends, its changes are compared with the
caller's current view and written there through the caller's own mount. So the caller keeps running, with its working
directory and open files, and sees the changes at once. In the end the caller's layer holds all changes, and is
committed, held or discarded as one. The change sets of nested calls are kept beside the change set of the caller, and
are added to the ledger when the caller's change set is committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from haft.changes.commit.area import remove
from haft.changes.commit.attributes import UnreadableAttributes, attributes_of, set_attributes
from haft.changes.commit.entry import UNREADABLE, Entry
from haft.changes.commit.exact_copy import copy, link
from haft.changes.commit.journal import write_journal
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.tree import Tree, rename, set_mode, set_owner
from haft.changes.engines.layer import mark_prefix
from haft.changes.guard.guard import is_granted
from haft.changes.objections import batch_conflict
from haft.changes.transactions import CONTAINED, Owner, TransactionResult, Transactions
from haft.contracts import Conflict, HaftError, ToolFailed
from haft.files import shown
from haft.values import dataclass, replace

Finished = tuple[str, int, int]
"""A finished layer: its name, device and inode."""
COPY: Final = "below"
TRIES: Final = 5
VIEW_SECONDS: Final = 10.0
"""How long a nested call waits for its caller's command to start."""
STOPPED: Final = (
    "the call was stopped before its end, and changes inside those of another run cannot be held separately"
)


@dataclass(slots=True)
class ContainedChanges:
    """The change set of a nested call whose changes are part of its caller's layer."""

    owner: Owner
    manifest: Manifest


class Scope:
    """The scope of one call that works in a layer."""

    def __init__(self, transactions: Transactions, run: str, upper: str, lowers: tuple[Finished, ...]) -> None:
        self._transactions = transactions
        self.run = run
        self._upper = upper
        self._lowers = lowers
        self._view = -1
        self._view_set = asyncio.Event()
        self._is_over = False
        self._lock = threading.Lock()
        self._contained: list[ContainedChanges] = []
        self._granted: dict[str, Entry | None] = {}
        """By path that a nested call changed by its own grant: the entry that the call left there."""

    def set_view(self, view: int) -> None:
        """Store a descriptor of the call's view. haft can open this view only when the call's command runs."""
        if self._is_over:
            os.close(view)  # The call has already ended.
            return
        self._view = view
        self._view_set.set()

    async def wait_for_view(self) -> bool:
        """Wait until the call's command runs. Returns whether the view is open, so that nested calls can work in this
        scope."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(VIEW_SECONDS):
                await self._view_set.wait()
        return self._view >= 0

    @property
    def path(self) -> str:
        """A path through which the host sees the call's view."""
        return f"/proc/self/fd/{self._view}/."

    def close(self) -> None:
        """Close the view when the call has ended."""
        self._is_over = True
        if self._view >= 0:
            os.close(self._view)
            self._view = -1

    def finished_layers(self, place: str, name: str) -> tuple[Finished, ...]:
        """The layers that are mounted below the layer of a nested call, topmost first. The first is a copy of this
        call's layer, made in the directory `place`, which is the directory `name` in the area."""
        with os.scandir(self._upper) as found:
            if next(found, None) is None:
                return self._lowers
        with self._lock:
            for attempt in range(TRIES):
                try:
                    copy_layer(self._upper, os.path.join(place, COPY))
                    break
                except OSError:  # The caller still runs, and removed a file that was being copied.
                    remove(os.path.join(place, COPY))
                    if attempt == TRIES - 1:
                        raise
        copy_of_it = os.stat(os.path.join(place, COPY))
        return ((f"{name}/{COPY}", copy_of_it.st_dev, copy_of_it.st_ino), *self._lowers)

    def merge(
        self,
        owner: Owner,
        manifest: Manifest,
        upper: str,
        conflicts: Sequence[str],
        granted_paths: Sequence[str],
        judged_paths: Collection[str] = (),
        *,
        check: Callable[[list[str]], str | None],
    ) -> TransactionResult:
        """Write the changes of a nested call into this call's layer. If there are conflicts, or a limit or the guard
        forbids the changes, they are discarded, and the result has an error. The guard has already judged
        `judged_paths`. `check` says why these paths may not be changed, because of the order of a batch."""
        if not manifest.entries:
            return TransactionResult(manifest.changes("none"))
        is_accepted = len(granted_paths) > 1 or bool(judged_paths)
        notes = {**manifest.notes, "owner": owner.to_json(), "verb": "call", "accepted": is_accepted}
        manifest = replace(manifest, notes=notes)
        with self._lock, Tree(self.path, forced=True) as view, Tree(upper, forced=True) as new:
            error = batch_conflict(manifest.entries, check) or self._objection(
                manifest, view, new, conflicts, granted_paths, judged_paths
            )
            if error is not None:
                return TransactionResult(manifest.changes("discarded", reason=error.message), error)
            try:
                self._keep(manifest, view, new)
                write_changes(manifest.entries, new, view)
            except OSError as failure:
                problem = ToolFailed(
                    f"its changes could not be added to those of {self.run}, which called it: {failure}"
                )
                return TransactionResult(manifest.changes("discarded", reason=problem.message), problem)
        self._contained.append(ContainedChanges(owner, manifest))
        inside = self._transactions.workspace.rstrip("/") + "/"
        grants = [path.removeprefix(inside) for path in granted_paths if path.startswith(inside)]
        for each in manifest.entries:
            if each.path in judged_paths or is_granted(each.path, grants):
                self._granted[each.path] = each.after
        reason = f"its changes are part of those of {self.run}, which called it, and are committed with them"
        return TransactionResult(manifest.changes("held", reason=reason))

    def _objection(
        self,
        manifest: Manifest,
        view: Tree,
        new: Tree,
        conflicts: Sequence[str],
        granted_paths: Sequence[str],
        judged_paths: Collection[str],
    ) -> HaftError | None:
        if conflicts:
            names = ", ".join(f"`{shown(path)}`" for path in conflicts[:3])
            return Conflict(
                f"its changes were discarded: {self.run}, which called it, or another nested call changed {names} too"
            )
        return self._transactions.objections.to_nested(manifest, view, new, granted_paths, judged_paths)

    def _keep(self, manifest: Manifest, view: Tree, new: Tree) -> None:
        """Store the old and new contents, so that the nested call can be shown and undone on its own."""
        for each in manifest.entries:
            for tree, state in ((view, each.before), (new, each.after)):
                if state is not None and state.kind == "file" and state.content:
                    descriptor = tree.read(each.path)
                    try:
                        self._transactions.blobs.put(descriptor, state.size)
                    finally:
                        os.close(descriptor)

    # When the call ends.

    def granted_to_calls(self, entries: Sequence[PathChange]) -> frozenset[str]:
        """The paths that nested calls changed under their own grants, without those that the caller changed again. A
        grant is valid only for the call that has it, so it does not cover the caller's own changes of such a path."""
        return frozenset(
            each.path
            for each in entries
            if each.path in self._granted and _has_same_effect(each.after, self._granted[each.path])
        )

    def contained_runs(self) -> list[str]:
        """The ids of the nested runs whose changes are part of this call's layer."""
        return [each.owner.run for each in self._contained]

    def write_contained(self) -> None:
        """Write the change sets of the nested calls into this run's directory."""
        for each in self._contained:
            place = os.path.join(self._transactions.live, self.run, CONTAINED, each.owner.run)
            os.makedirs(place, mode=0o700, exist_ok=True)
            write_journal(place, each.manifest)

    def hand_contained_to(self, above: Scope) -> None:
        """Add the change sets of this call's nested calls to `above`, the scope of this call's own caller."""
        above._contained += self._contained

    def drop(self) -> None:
        """Record that the changes of this call and of its nested calls are discarded."""
        if not self._transactions.has_journal(self.run):
            remove(os.path.join(self._transactions.live, self.run))
        for each in self._contained:
            self._transactions.record_discarded(each.manifest)


def _has_same_effect(now: Entry | None, then: Entry | None) -> bool:
    """Whether both entries have the same effect for a program that reads or runs the path."""
    if now is None or then is None:
        return now is then
    return now.content != UNREADABLE and replace(now, **_ignored_fields(then)) == then


def _ignored_fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in ("inode", "links", "ctime_ns", "mtime_ns")}


def copy_layer(upper: str, place: str) -> None:
    """Copy a layer with the overlay's marks, while the call goes on working in the layer."""
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    prefix = mark_prefix()
    with Tree(os.path.dirname(upper), forced=True) as source, Tree(os.path.dirname(place), forced=True) as target:
        top, onto = os.path.basename(upper), os.path.basename(place)
        copy(source, top, target, onto)
        for path, status in [*source.walk(top)]:
            if stat.S_ISCHR(status.st_mode):
                continue
            where = onto + path[len(top) :]
            with contextlib.suppress(FileNotFoundError):  # The call removed the file while it was copied.
                _copy_marks(source, path, target, where, prefix)


def _copy_marks(source: Tree, path: str, target: Tree, onto: str, prefix: str) -> None:
    try:
        marks = [
            name for name in os.listxattr(source.proc_path(path), follow_symlinks=False) if name.startswith(prefix)
        ]
    except PermissionError:
        return
    for name in marks:
        value = os.getxattr(source.proc_path(path), name, follow_symlinks=False)
        try:
            os.setxattr(target.proc_path(onto), name, value, follow_symlinks=False)
        except PermissionError:
            status = target.status(onto)
            assert status is not None
            set_mode(target, onto, stat.S_IMODE(status.st_mode) | 0o200)
            os.setxattr(target.proc_path(onto), name, value, follow_symlinks=False)
            set_mode(target, onto, stat.S_IMODE(status.st_mode))


def write_changes(entries: Sequence[PathChange], new: Tree, target: Tree) -> None:
    """Apply a change set to the tree `target`, with the new files from the tree `new`. Removals come first, innermost
    first. Then each new file is written completely under a temporary name and renamed to its path."""
    for each in sorted(entries, key=lambda one: one.path.count("/"), reverse=True):
        kind = None if each.after is None else each.after.kind
        if each.before is not None and (kind is None or (each.before.kind == "directory") != (kind == "directory")):
            place, name = target.at(each.path)
            (os.rmdir if each.before.kind == "directory" else os.unlink)(name, dir_fd=place)
    known: dict[int, str] = {}
    directories = []
    for each in sorted(entries, key=lambda one: one.path.count("/")):
        if each.after is None:
            continue
        status = new.status(each.path)
        assert status is not None
        if each.after.kind == "directory":
            place, name = target.at(each.path)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=place)
            directories.append((each.path, status))
            continue
        above = os.path.dirname(each.path)
        temporary = os.path.join(above, f".haft-{os.urandom(8).hex()}")
        if (first := known.get(status.st_ino)) is not None:
            link(target, first, target, temporary)
        else:
            copy(new, each.path, target, temporary)
        if status.st_nlink > 1:
            known[status.st_ino] = each.path
        rename(target, temporary, target, each.path)
    for path, status in reversed(directories):
        set_owner(target, path, status.st_uid, status.st_gid)
        with contextlib.suppress(UnreadableAttributes):
            set_attributes(target.proc_path(path), attributes_of(new.proc_path(path)))
        set_mode(target, path, stat.S_IMODE(status.st_mode))


def stopped_result(manifest: Manifest) -> TransactionResult:
    """The result of a nested call that was stopped and whose changes would have become part of its caller's layer."""
    return TransactionResult(replace(manifest, reason=None).changes("discarded", reason=STOPPED))
