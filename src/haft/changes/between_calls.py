"""Changes in the workspace between two calls of a session process.

A session process is a process that a tool keeps running between its calls. It may write files at any time. A
transaction covers only one call. Changes between two calls are found by comparing the workspace after one call with the
workspace before the next, or at the end of the process. haft cannot tell whether the process or a person made these
changes: it names them and leaves them alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from haft.changes.commit.entry import Entry
from haft.changes.commit.manifest import Manifest, PathChange
from haft.changes.snapshots.comparison import Snapshot
from haft.changes.transactions import Transactions
from haft.contracts import Changes, Session
from haft.files import shown
from haft.values import dataclass, replace

MOST_NAMED: Final = 20
"""How many paths a message names at most."""


@dataclass(frozen=True, slots=True)
class WorkspaceAfterCall:
    """The workspace as it was when a call ended."""

    run: str
    snapshot: Snapshot
    seq: int
    """The sequence number of the newest change set in the ledger when the call began. Change sets with higher numbers
    may explain later changes of the workspace."""


class WatchedSession:
    """The process that a session tool keeps running between calls, with the workspace as its last call left it. Any
    thread of the host may use this object, but only while the thread holds the workspace lock."""

    def __init__(self, session: Callable[[], Session | None], left: dict[Session, WorkspaceAfterCall]) -> None:
        """`session` gives the tool's current process, or None. `left` maps each process to the workspace after its last
        call; the objects of all processes share this dictionary."""
        self._session = session
        self._left = left

    def take(self) -> WorkspaceAfterCall | None:
        """Remove and return the workspace after the process's last call; None if there was no call."""
        session = self._session()
        return None if session is None else self._left.pop(session, None)

    def keep(self, left: WorkspaceAfterCall) -> None:
        """Remember the workspace after a call, unless the process has ended."""
        session = self._session()
        if session is not None and not session.is_over:
            self._left[session] = left


def unexplained_paths(transactions: Transactions, left: WorkspaceAfterCall, found: Sequence[PathChange]) -> list[str]:
    """The paths in `found`, except paths whose new state comes from a run that haft committed after `left`. Protected
    paths come first."""
    known = states_left_by_runs(transactions, left.seq)
    rest = [each for each in found if each.path not in known or not is_like(known[each.path], each.after)]
    objection = transactions.objections.of_guard(rest, None, ())
    protected = dict.fromkeys(getattr(objection, "paths", ()))
    return [*protected, *(each.path for each in rest if each.path not in protected)]


def states_left_by_runs(transactions: Transactions, seq: int) -> dict[str, Entry | None]:
    """Maps each path that runs changed after the change set `seq` to its entry after the last of these runs, or to None
    if that run deleted the path."""
    known: dict[str, Entry | None] = {}
    for row in transactions.ledger.since(seq):
        if row.workspace != transactions.workspace or row.state not in ("committed", "undone"):
            continue
        manifest = Manifest.read(os.path.join(row.area, row.directory))
        for each in () if manifest is None else manifest.entries:
            known[each.path] = each.after
    return known


def is_like(known: Entry | None, found: Entry | None) -> bool:
    """Whether two states of a path are alike; None stands for a path that does not exist."""
    return found is None if known is None else known.is_like(found)


def with_paths_between(changes: Changes, paths: Sequence[str]) -> Changes:
    """The call's changes, marked as incomplete, with a reason that names `paths`, which changed before the call."""
    reason = f"between calls changed: {describe_paths(paths)}"
    return replace(changes, complete=False, reason=f"{reason}; {changes.reason}" if changes.reason else reason)


def describe_paths(paths: Sequence[str]) -> str:
    """A phrase for a message: the first paths, how many more there are, and that anyone may have changed them."""
    more = f" and {len(paths) - MOST_NAMED:_} more" if len(paths) > MOST_NAMED else ""
    names = ", ".join(map(shown, paths[:MOST_NAMED]))
    return f"{names}{more} (by the process of this tool or by anyone else; nothing was put back)"
