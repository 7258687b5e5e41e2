"""What changed while no call of a session ran.

A process that outlives its calls may write between them. A transaction covers a call; what lies between two is found by
comparing what the workspace held when the last one was over with what the next one finds, or the end of the process.
Nothing tells whether that process did it or a person: it is named, and left as it is.
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
"""Paths in a sentence."""


@dataclass(frozen=True, slots=True)
class WorkspaceAfterCall:
    """The workspace as a call left it."""

    run: str
    snapshot: Snapshot
    seq: int
    """The last change set in the list when it began: what later ones did is accounted for."""


class WatchedSession:
    """The process of a tool that outlives its calls, from the side of their transactions. Whoever has the lock of the
    workspace asks and tells it, from whichever thread."""

    def __init__(self, session: Callable[[], Session | None], left: dict[Session, WorkspaceAfterCall]) -> None:
        """`session` is the process that the tool has at the moment; `left` is kept for all of them."""
        self._session = session
        self._left = left

    def take(self) -> WorkspaceAfterCall | None:
        """What its last call left. From here on it is for the taker to look after."""
        session = self._session()
        return None if session is None else self._left.pop(session, None)

    def keep(self, left: WorkspaceAfterCall) -> None:
        """A call is over. Where its process is over too, nothing can come of it."""
        session = self._session()
        if session is not None and not session.is_over:
            self._left[session] = left


def unexplained_paths(transactions: Transactions, left: WorkspaceAfterCall, found: Sequence[PathChange]) -> list[str]:
    """Of what is different since, the paths that no run of haft accounts for, protected ones first."""
    known = _states_left_by_runs(transactions, left.seq)
    rest = [each for each in found if each.path not in known or not _is_like(known[each.path], each.after)]
    objection = transactions.guard_objection(rest, None, ())
    protected = dict.fromkeys(getattr(objection, "paths", ()))
    return [*protected, *(each.path for each in rest if each.path not in protected)]


def _states_left_by_runs(transactions: Transactions, seq: int) -> dict[str, Entry | None]:
    """What the runs since then left at each path that they changed."""
    known: dict[str, Entry | None] = {}
    for row in transactions.ledger.since(seq):
        if row.workspace != transactions.workspace or row.state not in ("committed", "undone"):
            continue
        manifest = Manifest.read(os.path.join(row.area, row.directory))
        for each in () if manifest is None else manifest.entries:
            known[each.path] = each.after
    return known


def _is_like(known: Entry | None, found: Entry | None) -> bool:
    return found is None if known is None else known.is_like(found)


def with_paths_between(changes: Changes, paths: Sequence[str]) -> Changes:
    """The change set of a call, with what changed before it named and not part of it."""
    said = f"between calls changed: {describe_paths(paths)}"
    return replace(changes, complete=False, reason=f"{said}; {changes.reason}" if changes.reason else said)


def describe_paths(paths: Sequence[str]) -> str:
    """The first of some paths, and what nobody knows of them."""
    more = f" and {len(paths) - MOST_NAMED:_} more" if len(paths) > MOST_NAMED else ""
    named = ", ".join(map(shown, paths[:MOST_NAMED]))
    return f"{named}{more} (by the process of this tool or by anyone else; nothing was put back)"
