"""The port (storage interface) of the change ledger: the list of change sets, in the order in which they were
committed, and their states. Their contents are in the area of their workspace, a directory in which haft keeps the
layers and change sets of this workspace. The journals there are authoritative: after a crash, the ledger is completed
from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, Protocol

from haft.contracts import AmbiguousRun, ChangesState, UnknownRun
from haft.values import dataclass

Verb = Literal["call", "undo", "redo"]

_SHORTEST = 4
_MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One change set in the ledger."""

    seq: int
    """The number of the change set in the order of commits."""
    run: str
    workspace: str
    area: str
    who: str
    thread: str
    parent: str | None
    verb: Verb
    reverses: tuple[str, ...]
    """The runs that this undo or redo reversed."""
    engine: str
    state: ChangesState
    reason: str | None
    """Why the change set is held, or why it can no longer be undone."""
    at: float
    files: int
    kept: bool
    """Whether the files that the run replaced are still stored."""
    latest: str
    """The run that last changed these files: this one, or an undo or redo of it."""

    @property
    def directory(self) -> str:
        """The directory of the change set, relative to the area of its workspace."""
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
    """The list of change sets. Any thread of the process may use this object."""

    def put(
        self, row: Row, states: Sequence[tuple[str, ChangesState]] = (), paths: Collection[str] | None = None
    ) -> None:
        """Add a change set at the end of the list, and set the states of other change sets that it affects. If this
        change set is in the list already and its state changes, it moves to the end. `paths` are the paths by which
        `touched` and `touching` find the change set; they may contain surrogate escapes."""
        ...

    def set_state(self, run: str, state: ChangesState, reason: str | None = None) -> None: ...

    def set_files(self, run: str, files: int) -> None:
        """Record how many paths a change set has, after a part of it was taken out."""
        ...

    def forget_images(self, run: str, reason: str) -> None:
        """Record that the originals, which are the stored files that the run replaced, were deleted. haft can then
        still show the run's diff, but cannot undo the run."""
        ...

    def sync(self) -> None:
        """Make all changes so far survive power loss."""
        ...

    def latest(self) -> int:
        """The number of the change set that was added last."""
        ...

    def since(self, seq: int) -> list[Row]:
        """The change sets of all workspaces that were added after number `seq`, oldest first."""
        ...

    def get(self, run: str) -> Row | None: ...

    def named(self, prefix: str, limit: int) -> list[Row]:
        """The change sets whose run's name begins with `prefix`, the newest names first."""
        ...

    def find(self, name: str) -> Row:
        """The change set of the run with this name. A unique beginning of the run's name is enough. Raises `UnknownRun`
        if no run's name begins with `name`, and `AmbiguousRun` if several do."""
        if (exactly := self.get(name)) is not None:
            return exactly
        found = self.named(name, _MAX_NAMED) if len(name) >= _SHORTEST else []
        if not found:
            raise UnknownRun(name)
        if len(found) > 1:
            raise AmbiguousRun(name, [row.run for row in found])
        return found[0]

    def last(self, workspace: str, who: str) -> Row | None:
        """The newest change set that a call of the user `who` committed in a workspace and that is not undone. `haft
        undo` without arguments undoes this change set. None if there is no such change set."""
        ...

    def last_undone(self, workspace: str, who: str) -> Row | None:
        """The change set that was undone last and not redone since; None if there is no such change set."""
        ...

    def touched(self, workspace: str, paths: Collection[str], after: int) -> set[str]:
        """The part of `paths` that was changed in a workspace by change sets with a number above `after`. The result
        may contain a few of `paths` that were not changed."""
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
        """The change sets with a number above `after` and below `before` that changed any of `paths` in a workspace.
        The result may contain a few change sets that changed none of them. The cost depends on the number of results,
        not on the size of the ledger."""
        ...

    def of_parent(self, parent: str) -> list[Row]: ...

    def of_thread(self, workspace: str, thread: str) -> list[Row]: ...

    def all(self, workspace: str | None = None, state: str | None = None) -> list[Row]:
        """All change sets, oldest first. If `workspace` is given, only change sets of this workspace; if `state` is
        given, only change sets in this state."""
        ...

    def held(self) -> list[Row]:
        """The held change sets, oldest first."""
        ...

    def undoable(self) -> dict[str, tuple[int, float]]:
        """For each area (the directory with the change sets of a workspace), the number of runs that can be undone, and
        the time when the oldest of them was committed."""
        ...

    def close(self) -> None: ...
