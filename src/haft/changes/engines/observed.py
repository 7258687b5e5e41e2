"""Changes of a call that haft does not run, but watches: an edit by an agent's own tool.

Before the call, `ObservedFiles` stores the files that the call names. After the call, it compares them, and adds what
changed to the history, so that it can be shown and undone. The changes are in the workspace already: haft can neither
hold nor discard them, and knows nothing of files that the call did not name.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from haft.changes.candidates import last_changes
from haft.changes.commit.entry import UNREADABLE, Entry, entry_from
from haft.changes.commit.journal import write_journal
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.read_entry import read_entry
from haft.changes.commit.tree import Tree
from haft.changes.transactions import Owner, Transactions
from haft.contracts import Changes, HaftError
from haft.values import replace

MAX_BYTES: Final = 200_000_000
"""How many bytes of the named files are stored at most before a call."""
MAX_NEW_BYTES: Final = 1_000_000
"""How large a file may be that is stored after a call."""
MAX_FILES: Final = 1_000
_WRITTEN: Final = Entry("file", 0o644, 0, 0, size=1, content=UNREADABLE)
"""Stands for the state of a file after a call that has not begun."""
_MADE: Final = Entry("directory", 0o755, 0, 0)
"""Stands for a directory that such a call may make."""


class ObservedFiles:
    """The files that a call names, as they were before it."""

    def __init__(self, transactions: Transactions, paths: Iterable[str]) -> None:
        """`paths` are relative to the workspace, with links resolved."""
        self._transactions = transactions
        paths = list(paths)
        self._named = frozenset(paths)
        self._paths = [*dict.fromkeys(each for path in paths for each in _with_parents(path))][:MAX_FILES]
        self._before: dict[str, Entry | None] = {}
        self._began = time.time()

    def remember(self) -> list[str]:
        """Store the files as they are now. Returns the paths that could not be stored, so that haft cannot undo their
        changes. Call this in a thread."""
        left, missed = MAX_BYTES, []
        with Tree(self._transactions.workspace) as workspace:
            for path in self._paths:
                try:
                    status = workspace.status(path)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        left -= status.st_size
                        if left < 0:  # Decided by its size: reading a large file takes longer than an agent waits.
                            missed.append(path)
                            continue
                    self._before[path] = None if status is None else self._stored(workspace, path, status)
                except OSError:
                    missed.append(path)
        return missed

    def _stored(self, workspace: Tree, path: str, status: os.stat_result) -> Entry | None:
        entry = read_entry(workspace, path, status)
        if entry is None or entry.kind != "file":
            return entry
        if entry.content == UNREADABLE:
            raise PermissionError(path)
        return replace(entry, content=self._store(workspace, path, entry))

    def objection(self, granted_paths: Sequence[str] = ()) -> HaftError | None:
        """The guard's error if a write to one of the files needs a person's approval, because programs obey the file;
        otherwise None."""
        with Tree(self._transactions.workspace) as workspace:
            before = {path: _entry(workspace, path) for path in self._paths}
        changes = [
            PathChange(path, entry, _WRITTEN if path in self._named else _MADE)
            for path, entry in before.items()
            if path in self._named or entry is None
        ]
        return self._transactions.guard(changes, lambda _change, _side: None, granted_paths, ())

    def _store(self, workspace: Tree, path: str, entry: Entry) -> str:
        descriptor = workspace.read(path)
        try:
            return self._transactions.blobs.put(descriptor, entry.size)
        finally:
            os.close(descriptor)

    def finish(self, owner: Owner, reason: str, stopped: Callable[[], bool] = lambda: False) -> Changes:
        """Add what changed since `remember` to the history. `reason` says why the list may not be complete. Call this
        in a thread: it waits for the lock of the workspace."""
        transactions = self._transactions
        with transactions.locked(stopped):
            entries = tuple(sorted(self._changed(), key=lambda each: os.fsencode(each.path)))
            manifest = Manifest(
                owner.run,
                transactions.workspace,
                "declared",
                entries,
                complete=False,
                reason=reason,
                notes={"began": self._began, "owner": owner.to_json(), "verb": "call"},
            )
            if not entries:
                return manifest.changes("none")
            full = os.path.join(transactions.live, owner.run)
            os.makedirs(full, mode=0o700, exist_ok=True)
            self._keep_new(entries)
            transactions.blobs.sync()
            write_journal(full, replace(manifest, notes={**manifest.notes, "mark": "commit", "steps": []}))
            transactions.finish(manifest)
        return manifest.changes("committed")

    def _keep_new(self, entries: Iterable[PathChange]) -> None:
        """Store the new files that are not large: another call that is under way may change them before it ends, and
        its undo then restores them."""
        with Tree(self._transactions.workspace) as workspace:
            for path, new in ((each.path, each.after) for each in entries):
                if new is not None and new.kind == "file" and new.size <= MAX_NEW_BYTES:
                    with contextlib.suppress(OSError):
                        self._store(workspace, path, new)

    def _changed(self) -> Iterable[PathChange]:
        with Tree(self._transactions.workspace) as workspace:
            for path, before in self._before.items():
                try:
                    after = read_entry(workspace, path)
                except OSError:
                    continue
                if _is_same(before, after):
                    continue
                before = self._left_by_others(path, before)
                if not _is_same(before, after):
                    yield PathChange(path, before, after)

    def _left_by_others(self, path: str, before: Entry | None) -> Entry | None:
        """The state in which the last other run left this path since `remember`; `before` if none changed it. Changes
        of other runs are theirs: this call must not undo them."""
        transactions = self._transactions
        for row in last_changes(transactions.ledger, transactions.workspace, [path], 0):
            if row.at < self._began:
                break
            other = Manifest.read(os.path.join(transactions.area.path, row.directory))
            for each in () if other is None else other.entries:
                if each.path == path:
                    return each.after
        return before


def _entry(tree: Tree, path: str) -> Entry | None:
    """The state of a path without its content."""
    try:
        status = tree.status(path)
        if status is None:
            return None
        return entry_from(status, tree.link_target(path) if stat.S_ISLNK(status.st_mode) else UNREADABLE)
    except OSError:
        return None


def _is_same(before: Entry | None, after: Entry | None) -> bool:
    """Whether nothing changed but times."""
    if before is None or after is None or before.is_directory or after.is_directory:
        return (before is None) == (after is None) and (before is None or after is None or before.kind == after.kind)
    return before.is_like(replace(after, mtime_ns=before.mtime_ns))


def _with_parents(path: str) -> list[str]:
    """The path, after the directories above it: the call may make them."""
    found = [path]
    while path := os.path.dirname(path):
        found.insert(0, path)
    return found
