"""The port of the change ledger: which change sets there are, in which order they were committed, and what became of
each. Their contents lie in the area of their workspace; the journals there are the truth, and the ledger is completed
from them after a crash."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, Protocol

from haft.contracts import AmbiguousRun, ChangesState, UnknownRun
from haft.values import dataclass

Verb = Literal["call", "undo", "redo"]

_SHORTEST = 4
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One change set in the list."""

    seq: int
    """The order in which they were committed."""
    run: str
    workspace: str
    area: str
    who: str
    thread: str
    parent: str | None
    verb: Verb
    reverses: tuple[str, ...]
    """The runs that an undo took back, or a redo brought back."""
    engine: str
    state: ChangesState
    reason: str | None
    """Why it is held, or why it can no longer be undone."""
    at: float
    files: int
    kept: bool
    """Whether what it displaced is still there."""
    latest: str
    """The run that moved these files last: this one, or an undo or redo of it."""

    @property
    def directory(self) -> str:
        """Where it lies below its area."""
        return f"{'held' if self.state == 'held' else 'kept'}/{self.run}"

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "workspace": self.workspace,
            "who": self.who,
            "thread": self.thread,
            "parent": self.parent,
            "engine": self.engine,
            "state": self.state,
            "reason": self.reason,
            "files": self.files,
            "undoable": self.kept and self.state == "committed",
        }


class Ledger(Protocol):
    """The list of change sets. Any thread may use it."""

    def put(
        self, row: Row, states: Sequence[tuple[str, ChangesState]] = (), paths: Collection[str] | None = None
    ) -> None:
        """Add a change set at the end of the list, and with it what becomes of others by it: their state. One that is
        there already moves to the end, unless nothing changes. It is found by `paths` from then on; they may hold
        surrogate escapes."""
        ...

    def set_state(self, run: str, state: ChangesState, reason: str | None = None) -> None: ...

    def forget_images(self, run: str, reason: str) -> None:
        """What it displaced is gone: it can be seen, and not be undone."""
        ...

    def sync(self) -> None:
        """What was said so far survives power loss from here on."""
        ...

    def latest(self) -> int:
        """The number of the one that was put into the list last."""
        ...

    def since(self, seq: int) -> list[Row]:
        """Those that were put into the list after one, of all workspaces, oldest first."""
        ...

    def get(self, run: str) -> Row | None: ...

    def named(self, prefix: str, limit: int) -> list[Row]:
        """Those whose run begins so, the newest names first."""
        ...

    def find(self, name: str) -> Row:
        """One change set, by its run or the beginning of that which only one has."""
        if (exactly := self.get(name)) is not None:
            return exactly
        found = self.named(name, _MOST_NAMED) if len(name) >= _SHORTEST else []
        if not found:
            raise UnknownRun(name)
        if len(found) > 1:
            raise AmbiguousRun(name, [row.run for row in found])
        return found[0]

    def last(self, workspace: str, who: str) -> Row | None:
        """What `haft undo` alone takes back."""
        ...

    def last_undone(self, workspace: str, who: str) -> Row | None:
        """What was taken back last, and not brought back since."""
        ...

    def touched(self, workspace: str, paths: Collection[str], after: int) -> set[str]:
        """Those of some paths that a later one than `after` changed in a workspace, and maybe a few others."""
        ...

    def touching(
        self,
        workspace: str,
        paths: Collection[str],
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = True,
    ) -> list[Row]:
        """Those between two that changed any of some paths in a workspace, and maybe a few others. It costs what it
        finds, however many there are."""
        ...

    def of_parent(self, parent: str) -> list[Row]: ...

    def of_thread(self, workspace: str, thread: str) -> list[Row]: ...

    def all(self, workspace: str | None = None, state: str | None = None) -> list[Row]:
        """Oldest first."""
        ...

    def held(self) -> list[Row]:
        """Those that wait for a person, oldest first."""
        ...

    def undoable(self) -> dict[str, tuple[int, float]]:
        """For each area, how many `haft undo` may name, and when the oldest of them was committed."""
        ...

    def close(self) -> None: ...
