"""Says why a change set may not be committed without a person's decision: a conflict, the order of calls, a limit, or
the guard."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.commit.tree import Tree
from haft.changes.published.conflicts import CommitHistory
from haft.changes.published.register import Register
from haft.changes.published.views import View
from haft.changes.store.blobs import Blobs
from haft.contracts import Conflict, HaftError, LimitExceeded, Limits
from haft.files import shown

_HOW_TO_GO_ON: Final = (
    "call it again. `haft diff RUN` shows what it did, `haft changes apply RUN` applies it all the same, `haft changes"
    " drop RUN` discards it"
)

Guard = Callable[
    [Sequence[PathChange], Callable[[PathChange, str], Any], Sequence[str], Collection[str]], "HaftError | None"
]
"""Returns an error if a change set touches files that could run code later on the host. Arguments: the changes, a
reader of contents, granted paths, and paths that were already judged."""


class Objections:
    """What speaks against the commits in one workspace."""

    def __init__(self, workspace: str, area: str, guard: Guard, limits: Limits, blobs: Blobs) -> None:
        self._workspace = workspace
        self._area = area
        self._guard = guard
        self._limits = limits
        self._blobs = blobs

    def to_commit(
        self,
        manifest: Manifest,
        upper: str | None,
        conflicts: Sequence[str],
        granted_paths: Sequence[str],
        judged_paths: Collection[str] = (),
    ) -> HaftError | None:
        """The error if a change set may not be committed, because of a conflict, a limit or the guard; otherwise
        None."""
        if conflicts:
            return conflict_error(conflicts, "someone else changed it while the call ran")
        return self._of_limit(manifest) or self.of_guard(manifest.entries, upper, granted_paths, judged_paths)

    def of_guard(
        self,
        entries: Sequence[PathChange],
        upper: str | None,
        granted_paths: Sequence[str],
        judged_paths: Collection[str] = (),
    ) -> HaftError | None:
        """The guard's error about these changes, or None. The new files wait in `upper`, a directory relative to the
        area; if `upper` is None, they are in the workspace already."""
        with Tree(self._area, forced=True) as ours, Tree(self._workspace) as workspace:

            def read(each: PathChange, side: str) -> Any:
                if upper is None and side == "before":
                    return self._blob(each)  # The workspace holds the new content.
                waits = upper is not None and side == "after"
                tree, path = (ours, f"{upper}/{each.path}") if waits else (workspace, each.path)
                try:
                    return os.fdopen(tree.read(path), "rb")
                except OSError:
                    return None

            return self._guard(entries, read, granted_paths, judged_paths)

    def to_nested(
        self, manifest: Manifest, view: Tree, new: Tree, granted_paths: Sequence[str], judged_paths: Collection[str]
    ) -> HaftError | None:
        """The error if a limit or the guard does not allow the change set of a nested call to become part of its
        caller's change set; otherwise None. The new files lie in `new`; `view` is the workspace as the caller sees
        it."""
        if (error := self._of_limit(manifest)) is not None:
            return error

        def read(each: PathChange, side: str) -> Any:
            try:
                return os.fdopen((new if side == "after" else view).read(each.path), "rb")
            except OSError:
                return None

        return self._guard(manifest.entries, read, granted_paths, judged_paths)

    def _of_limit(self, manifest: Manifest) -> HaftError | None:
        most = self._limits.max_changed_files
        if most and len(manifest.entries) > most:
            return LimitExceeded("max_changed_files", most, f"it changed {len(manifest.entries):_} files")
        return None

    def _blob(self, each: PathChange) -> Any:
        before = each.before
        if before is None or before.kind != "file" or not before.content or not self._blobs.has(before.content):
            return None
        return self._blobs.open(before.content)


def order_conflict(entries: Sequence[PathChange], view: View | None, register: Register) -> HaftError | None:
    """The error if a change set may not be committed because of the order of calls: that of its batch or, with
    `serial`, some order of all calls. Call it under the workspace lock."""
    if view is None:
        return None
    if (conflict := batch_conflict(entries, view.check)) is not None:
        return conflict
    if view.isolation == "serial":
        if register.is_torn(view.name):
            return _not_committed("it ran for long, and its view of the workspace was torn (isolation `serial`)")
        path = CommitHistory(register, view.number, view.own).later_read(view.reads)
        if path is not None:
            return _not_committed(
                f"`{shown(path)}`, which it may have read, was changed by another call meanwhile (isolation `serial`)"
            )
    return None


def batch_conflict(entries: Sequence[PathChange], check: Callable[[list[str]], str | None]) -> Conflict | None:
    """The error if a change set may not be committed because of the order of the call's batch. `check` says why these
    paths may not be committed, or returns None."""
    why = check([each.path for each in entries])
    return None if why is None else _not_committed(why)


def _not_committed(why: str) -> Conflict:
    return Conflict(f"its changes were not committed: {why}", hint=_HOW_TO_GO_ON)


def conflict_error(paths: Sequence[str], why: str, *, hint: str | None = None) -> Conflict:
    """The error for a change set that was not committed because of a conflict."""
    names = ", ".join(f"`{shown(path)}`" for path in paths[:3]) + (
        f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    )
    return Conflict(
        f"its changes were not applied: {names}: {why}",
        hint=hint
        or "nothing is lost: `haft diff RUN` shows them, `haft changes apply RUN` applies them, "
        "`haft changes drop RUN` discards them",
    )
