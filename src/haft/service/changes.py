"""Change sets, as the service offers them: put together from the state home, and asked for by run.

`assemble` makes what a host needs to make changes, `open_changes` what any process needs to look at them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from haft import changes
from haft.changes import (
    Blobs,
    Guard,
    Ledger,
    Manifest,
    PathChange,
    Row,
    Side,
    Transactions,
)
from haft.contracts import BadUsage, HaftError, Limits, SandboxDenied
from haft.files import elsewhere, shown
from haft.runs import RunRecord
from haft.sandbox import OWN_PLACES
from haft.storage import Lease, StateHome, open_stores
from haft.values import replace

if TYPE_CHECKING:
    from haft.changes import ChangeSet, Direction, FileDifference

_log = logging.getLogger("haft")

_MOST_TOLD: Final = 5
"""How many calls are named."""


def transactions_of(
    home: StateHome,
    workspace: str,
    host: str,
    limits: Limits,
    *,
    lease: Lease | None = None,
    synced: bool = False,
    closed: Callable[[], Iterable[str]] = tuple,
) -> Transactions:
    """The change sets of a workspace, made in the name of a host. What is `closed` is protected besides."""
    guard = guard_of(workspace, closed)
    stores = open_stores(home)
    transactions = Transactions(
        home.changes, stores, home.blobs, workspace, host, limits, guard, lease=lease, synced=synced
    )
    transactions.recover_commits = lambda left: changes.recover_left_commits(left, _tell)
    return transactions


def _tell(run: str, what: str) -> None:
    _log.warning("%s: %s", run, what)


def guard_of(workspace: str, closed: Callable[[], Iterable[str]] = tuple) -> Guard:
    """What may not come into a workspace unasked; what is `closed` too, relative to it."""
    inside = workspace.rstrip("/") + "/"
    own = [os.path.relpath(path, workspace) for path in OWN_PLACES if path.startswith(inside)]

    def guard(
        entries: Sequence[PathChange], read: Any, spared: Sequence[str], passed_over: Collection[str]
    ) -> HaftError | None:
        free = [path.removeprefix(inside) for path in spared if path.startswith(inside)]
        places = [*own, *closed(), *elsewhere(workspace)]
        found = changes.offences(entries, read, workspace=workspace, granted_paths=free, own=places)
        found = [each for each in found if each.activates or each.path not in passed_over]
        if not found:
            return None
        first = found[0]
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        grants = list(dict.fromkeys(each.grant for each in found if each.grant is not None))
        let = " ".join(f"`--write {grant}`" for grant in grants[:3])
        return SandboxDenied(
            "a change: the changed file could run code later on this machine",
            f"`{shown(first.path)}`: {first.why}{more}",
            (f"call it with {let} to let it; " if let else "")
            + "nothing is lost: `haft diff RUN` shows it all, `haft changes apply RUN` takes it in, "
            "`haft changes drop RUN` throws it away",
            [each.path for each in found],
        )

    return guard


def recover_changes(home: StateHome, lease: Lease) -> None:
    """Finish or take back what a dead host was committing, under its lease."""

    def make(workspace: str, host: str) -> Transactions:
        return transactions_of(home, workspace, host, Limits(), lease=lease)

    changes.recover(make, home.changes, lease.host, _tell)


class ChangesFacade:
    """The change sets of a state home, to be looked at."""

    def __init__(self, home: StateHome) -> None:
        self.ledger = open_stores(home).connect().ledger
        self._kept = changes.KeptChanges(self.ledger, Blobs(home.blobs))

    def find(self, run: str) -> ChangeSet:
        """By the run's name, or the beginning of it that only one has."""
        return self._kept.find(run)

    def read(self, found: ChangeSet, each: PathChange, side: Side) -> BinaryIO | None:
        """What a file held before or after; None where it is no longer kept."""
        return self._kept.read(found, each, side)

    def differences(self, found: ChangeSet) -> Iterator[FileDifference]:
        """What each file of a change set was and became."""
        return changes.differences(found.entries, lambda altered, side: self.read(found, altered, side))

    def told_of_calls(self, made: Iterable[str]) -> str | None:
        """Where to look for changes of the calls that a run made, where they have change sets of their own."""
        return told_of_calls(self.ledger, made)

    def brought_up_to_date(self, run: RunRecord) -> RunRecord:
        """A run, with what became of its changes since it ended."""
        return brought_up_to_date(self.ledger, run)

    def close(self) -> None:
        self._kept.close()
        self.ledger.close()


def brought_up_to_date(ledger: Ledger, run: RunRecord) -> RunRecord:
    """A run, with what became of its changes since it ended: committed after all, undone, thrown away."""
    row = ledger.get(run.id)
    if row is None:
        return run
    changes = run.record["changes"]
    if not changes["files"]:  # Its host was killed before it could say.
        manifest = Manifest.read(os.path.join(row.area, row.directory))
        changes = changes if manifest is None else manifest.changes(row.state).to_json()
    changes = {
        **changes,
        "state": row.state,
        "reason": row.reason or (None if changes["complete"] else changes["reason"]),
    }
    if row.state != "held":
        changes["conflicts"] = []
    return replace(run, record={**run.record, "changes": changes})


def told_of_calls(ledger: Ledger, made: Iterable[str]) -> str | None:
    """Where to look for changes of the calls that a run made, where they have change sets of their own."""
    rows = (ledger.get(run) for run in made)
    changed = [f"`haft diff {row.run}`" for row in rows if row is not None and row.files]
    if not changed:
        return None
    more = f" and {len(changed) - _MOST_TOLD} more" if len(changed) > _MOST_TOLD else ""
    return f"the calls that it made have changes of their own: {', '.join(changed[:_MOST_TOLD])}{more}"


def nothing_to(verb: str, record: RunRecord, hint: str | None = None) -> BadUsage:
    """Why there is nothing to undo, apply and so on of a run that has no change set. `hint` says what else to do."""
    changes = record.record["changes"]
    if record.is_open:
        return BadUsage(f"{record.id} has not ended yet", hint=f"`haft watch {record.id}` follows it")
    about = record.record["arguments"].get("runs") if record.tool in ("undo", "redo", "apply", "drop") else None
    hint = f"it settled {' '.join(map(str, about))}" if isinstance(about, list) else hint
    if changes["state"] == "discarded":
        return BadUsage(f"there is nothing to {verb}: the changes of {record.id} were thrown away", hint=hint)
    if not changes["complete"]:
        reason = changes["reason"]
        return BadUsage(f"there is nothing to {verb}: what {record.id} changed is not known ({reason})", hint=hint)
    if changes["files"]:
        return BadUsage(f"there is nothing to {verb}: what {record.id} changed was not kept", hint=hint)
    return BadUsage(f"there is nothing to {verb}: {record.id} changed nothing", hint=hint)


def _with_what_it_made(ledger: Ledger, name: str, direction: Direction, made: Sequence[str]) -> list[Row]:
    """The change set of a run, and those of what it made that are in the workspace, or were taken out of it."""
    state = "committed" if direction == "undo" else "undone"
    below = {row.run: row for one in (name, *made) for row in _below(ledger, one, name)}
    children = [row for row in below.values() if row.state == state and row.files]
    children = [row for row in children if not _was_called_off(ledger, row)]
    try:
        own = ledger.find(name)
    except HaftError:
        if not below and not made:
            raise
        return children
    # Where its own cannot be reversed, what it made still can.
    return [own, *children] if own.state == state or not children else children


def _was_called_off(ledger: Ledger, row: Row) -> bool:
    """Whether it was taken back because the run that made it was cancelled: no redo of others brings it back."""
    by = ledger.get(row.latest) if row.state == "undone" else None
    return by is not None and by.parent is not None


def _below(ledger: Ledger, run: str, top: str) -> list[Row]:
    """The change set of a run that another made, and those of what it made itself."""
    own = None if run == top else ledger.get(run)
    return [*([] if own is None or own.verb != "call" else [own]), *ledger.of_parent(run)]


def rows_for(
    ledger: Ledger,
    workspace: str,
    who: str,
    runs: Sequence[str],
    thread: str | None,
    direction: Direction = "undo",
    made_by: Callable[[str], Iterable[str]] = lambda _run: (),
) -> list[Row]:
    """The change sets that an undo means: those named, with all that they made, by calls inside calls; those of a
    thread; else the last of this user. For a redo, those named and what they made. `made_by` are the runs that a run
    made, and those that they made: a run that changed nothing itself may have made one that did."""
    found: list[Row] = []
    for name in runs:
        found += _with_what_it_made(ledger, name, direction, [*made_by(name)])
    if thread is not None:
        found += ledger.of_thread(workspace, thread)
        if not found:
            raise BadUsage(f"nothing of thread {thread} is there to undo")
    if not runs and thread is None:
        if direction == "redo":
            raise BadUsage("`redo` needs the run that was undone", hint="`haft log` lists the runs")
        last = ledger.last(workspace, who)
        if last is None:
            raise BadUsage(f"there is nothing left to undo in {workspace} for {who}")
        found.append(last)
    if not found:
        raise BadUsage(f"nothing of {', '.join(runs)} is there to {direction}")
    unique = list({row.run: row for row in found}.values())
    places = {row.workspace for row in unique}
    if len(places) > 1:
        raise BadUsage("these runs changed different workspaces", hint="undo those of each workspace apart")
    return unique
