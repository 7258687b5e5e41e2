"""Change sets of calls inside calls: the lock that a caller shares, and what it had changed before it called.

A caller that has the workspace alone shares its lock with the calls that it makes. Before each of them, what the caller
has changed so far becomes a change set of its own, a *part*: so the change sets of a caller, of its calls and again of
the caller follow one another, and undo takes them back newest first. A part has a run's name and no run; its parent is
the caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from haft.changes.commit.manifest import Manifest
from haft.changes.ledger import Ledger, Row
from haft.contracts import Change, Changes, new_run_id
from haft.values import dataclass, field, replace


@dataclass(slots=True)
class Lock:
    """The lock of a workspace, as a caller holds it."""

    descriptor: int = -1

    def release(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


SHARED: Final[ContextVar[Lock | None]] = ContextVar("haft-shared-lock", default=None)
"""The lock that a caller of this call holds, if one does."""


@contextmanager
def share_lock(lock: Lock | None) -> Iterator[None]:
    """Within, whoever takes the lock of the workspace has the caller's."""
    before = SHARED.set(lock)
    try:
        yield
    finally:
        SHARED.reset(before)


def shared_lock() -> int | None:
    """A descriptor of the caller's lock: closing it does not let go of that."""
    lock = SHARED.get()
    return None if lock is None or lock.descriptor < 0 else os.dup(lock.descriptor)


@dataclass(slots=True)
class CallerParts:
    """What a caller changed before the calls that it made."""

    manifests: list[Manifest] = field(default_factory=list)

    @staticmethod
    def new_name() -> str:
        return new_run_id()

    def with_parts(self, changes: Changes) -> Changes:
        """What the caller changed in all: `changes` is what it changed since the last call."""
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
    """The change sets of the runs that a caller made, and its own parts, that are in the workspace."""
    rows = [row for run in made if (row := ledger.get(run)) is not None]
    for run in (caller, *made):
        rows += ledger.of_parent(run)
    unique = {row.run: row for row in rows}
    return [row for row in unique.values() if row.state == "committed" and row.files]
