"""Nested calls: the lock that a caller shares with them, and the changes that a caller made before each of them.

A caller that holds the workspace lock shares it with its nested calls. Before each nested call, the caller's changes so
far become a change set of their own, a *part*. So the change sets of the caller, of its nested calls, and again of the
caller follow one another, and undo reverts them newest first. A part has an id like the id of a run, although no run
has this id; the parent of a part is the caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from haft.changes.commit.manifest import Manifest
from haft.changes.ledger import Ledger, Row
from haft.changes.published.register import Register
from haft.contracts import Change, Changes, new_run_id
from haft.values import dataclass, field, replace


@dataclass(slots=True)
class Lock:
    """The workspace lock of one holder. The descriptor is negative while the lock is not held."""

    descriptor: int = -1
    views: int = -1
    """The lock of the register of views, if this holder took it."""
    is_alone: bool = False
    """Whether nobody else has a view of the workspace, or gets one, as long as this lock is held."""

    def release(self) -> None:
        if self.views >= 0:
            Register.unlock(self.views)
            self.views = -1
        self.is_alone = False
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


SHARED: Final[ContextVar[Lock | None]] = ContextVar("haft-shared-lock", default=None)
"""The lock that the caller of the current nested call holds; None if the call is not nested or the caller has none."""


@contextmanager
def share_lock(lock: Lock | None) -> Iterator[None]:
    """Within this context, `Transactions.take_lock` returns a duplicate of this lock instead of waiting for it."""
    before = SHARED.set(lock)
    try:
        yield
    finally:
        SHARED.reset(before)


def has_workspace_alone() -> bool:
    """Whether a caller of the current call keeps all other calls out of the workspace."""
    lock = SHARED.get()
    return lock is not None and lock.is_alone


def shared_lock() -> int | None:
    """A duplicate descriptor of the caller's lock; None if the caller holds none. Closing the duplicate does not
    release the lock."""
    lock = SHARED.get()
    return None if lock is None or lock.descriptor < 0 else os.dup(lock.descriptor)


@dataclass(slots=True)
class CallerParts:
    """The parts of one caller: the change sets that it made before each of its nested calls."""

    manifests: list[Manifest] = field(default_factory=list)

    @staticmethod
    def new_name() -> str:
        return new_run_id()

    def with_parts(self, changes: Changes) -> Changes:
        """All changes of the caller: those of the parts, and `changes`, which the caller made since its last nested
        call."""
        if not self.manifests:
            return changes
        files: dict[str, Change] = {}
        for manifest in self.manifests:
            files |= {each.path: each for each in manifest.changes("committed").files}
        files |= {each.path: each for each in changes.files}
        state = "committed" if changes.state == "none" else changes.state
        engine = self.manifests[0].engine if changes.engine == "none" else changes.engine
        return replace(changes, engine=engine, state=state, files=tuple(files[path] for path in sorted(files)))


def committed_by_nested_calls(ledger: Ledger, caller: str, made: Sequence[str]) -> list[Row]:
    """The change sets of the nested runs `made`, and the parts of the caller and of these runs. Change sets that are no
    longer in the workspace are left out."""
    rows = [row for run in made if (row := ledger.get(run)) is not None]
    for run in (caller, *made):
        rows += ledger.of_parent(run)
    unique = {row.run: row for row in rows}
    return [row for row in unique.values() if row.state == "committed" and row.files]
