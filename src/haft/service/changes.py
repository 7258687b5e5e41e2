"""Opens the change sets of a state home, and finds those of a run.

A host uses `transactions_of`, which can change files. `ChangesFacade` lets any process read the change sets.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
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
    Views,
)
from haft.contracts import (
    BadUsage,
    ChangesState,
    HaftError,
    Limits,
    SandboxDenied,
    is_batch_id,
    iso_time,
    path_to_json,
)
from haft.files import elsewhere, shown
from haft.runs import History, RunRecord
from haft.sandbox import OWN_PLACES
from haft.storage import Lease, StateHome, open_stores
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.changes import BlamedLine, ChangeSet, Direction, FileDifference, FileEdit, LiveChanges

_log = logging.getLogger("haft")

_MAX_NAMED: Final = 5
"""How many calls a message names at most."""


def transactions_of(
    home: StateHome,
    workspace: str,
    host: str,
    limits: Limits,
    *,
    lease: Lease | None = None,
    synced: bool = False,
    flush_seconds: float = 2.0,
    views: Views | None = None,
    closed: Callable[[], Iterable[str]] = tuple,
) -> Transactions:
    """The change sets of a workspace, for a host. `closed` returns additional protected paths, relative to the
    workspace."""
    guard = guard_of(workspace, closed)
    stores = open_stores(home)
    transactions = Transactions(
        home.changes,
        stores,
        home.blobs,
        workspace,
        host,
        limits,
        guard,
        lease=lease,
        synced=synced,
        flush_seconds=flush_seconds,
        views=views,
    )
    transactions.recover_commits = lambda left: changes.recover_left_commits(left, _tell)
    transactions.take_back_published = lambda left, run: changes.take_back_published(left, run, _tell)
    return transactions


def _tell(run: str, what: str) -> None:
    _log.warning("%s: %s", run, what)


def guard_of(workspace: str, closed: Callable[[], Iterable[str]] = tuple) -> Guard:
    """The guard, which holds changes of protected paths until a person applies them. `closed` returns additional
    protected paths, relative to the workspace."""
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
            (f"call it with {let} to allow it; " if let else "")
            + "all changes of the call are held: `haft diff RUN` shows them, `haft changes apply RUN` applies them, "
            "`haft changes drop RUN` drops them",
            [each.path for each in found],
        )

    return guard


def recover_changes(home: StateHome, lease: Lease) -> None:
    """Finish or roll back the commits that a dead host left unfinished. `lease` is that host's lease, which this
    process has taken over."""

    def make(workspace: str, host: str) -> Transactions:
        return transactions_of(home, workspace, host, Limits(), lease=lease)

    changes.recover(make, home.changes, lease.host, _tell)


@dataclass(frozen=True, slots=True)
class ChangesPart:
    """A part of a run's changes that was applied separately, or the rest of them."""

    run: str
    """The run that applied the part; for the rest, the run that made the changes."""
    state: ChangesState
    paths: tuple[str, ...]
    """As JSON shows them."""

    def to_json(self) -> dict[str, Any]:
        return {"run": self.run, "state": self.state, "files": list(self.paths)}


def _paths(entries: Sequence[PathChange]) -> tuple[str, ...]:
    return tuple(path_to_json(each.path)["path"] for each in entries)


class ChangesFacade:
    """The change sets of a state home, for reading."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self.ledger = open_stores(home).connect().ledger
        self._kept = changes.KeptChanges(self.ledger, Blobs(home.blobs))

    def find(self, run: str) -> ChangeSet:
        """The change set of a run, by the run's id or a unique prefix of it."""
        return self._kept.find(run)

    def read(self, found: ChangeSet, each: PathChange, side: Side) -> BinaryIO | None:
        """The content of a file before or after the run; None if it is no longer stored."""
        return self._kept.read(found, each, side)

    def differences(self, found: ChangeSet) -> Iterator[FileDifference]:
        """The difference of each file in a change set."""
        return changes.differences(found.entries, lambda altered, side: self.read(found, altered, side))

    def diff_text(self, run: str) -> str:
        """The diff of a run's changes, as a person sees it who approves them."""
        return changes.diff_text(self._kept, run)

    def blame(self, workspace: str, path: str) -> list[BlamedLine]:
        """The lines of a file, each with the run that wrote it. The path is relative to the workspace."""
        return changes.blame(self._kept, workspace, path)

    def file_history(self, workspace: str, path: str, limit: int) -> list[FileEdit]:
        """The last changes of a path, by runs and outside of haft, newest first. The path is relative to the
        workspace."""
        return changes.file_history(self._kept, workspace, path, limit)

    def parts(self, run: str, listed: Sequence[str] = ()) -> list[ChangesPart]:
        """The parts of a run's changes if someone applied some of them separately, the rest last; empty otherwise.
        `listed` are the paths that the run's record lists: those in no other part are the rest."""
        parts = self._kept.parts(run)
        if not parts:
            return []
        found = [ChangesPart(each.run, each.row.state, _paths(each.entries)) for each in parts]
        taken = {path for part in found for path in part.paths}
        row = self.ledger.get(run)
        if row is not None:
            if not listed:
                with contextlib.suppress(HaftError):
                    listed = _paths(self.find(run).entries)
            rest = tuple(path for path in listed if path not in taken)
            found += [ChangesPart(run, row.state, rest)] if rest else []
        return found

    def live(self, run: str) -> AbstractContextManager[LiveChanges | None]:
        """A context manager with what a running call has changed so far; None if it does not work in a layer."""
        return changes.open_live_changes(self._home.changes, run)

    def nested_changes_text(self, made: Iterable[str]) -> str | None:
        """A text that names the nested calls among `made` that have change sets of their own; None if there are no such
        calls."""
        return nested_changes_text(self.ledger, made)

    def with_current_changes(self, run: RunRecord) -> RunRecord:
        """The run with the current state of its changes."""
        return with_current_changes(self.ledger, run)

    def close(self) -> None:
        self._kept.close()
        self.ledger.close()


def with_current_changes(ledger: Ledger, run: RunRecord) -> RunRecord:
    """The run with the current state of its changes, which may have been applied, undone or dropped after the run
    ended."""
    row = ledger.get(run.id)
    if row is None:
        return run
    changes = run.record["changes"]
    if not changes["files"]:  # The run's host was killed before it could save the list of files.
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


def nested_changes_text(ledger: Ledger, made: Iterable[str]) -> str | None:
    """A text that names the nested calls among `made` that have change sets of their own; None if there are no
    such calls."""
    rows = (ledger.get(run) for run in made)
    changed = [f"`haft diff {row.run}`" for row in rows if row is not None and row.files]
    if not changed:
        return None
    more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
    return f"the calls that it made have their own changes: {', '.join(changed[:_MAX_NAMED])}{more}"


def nothing_to(verb: str, record: RunRecord, hint: str | None = None) -> BadUsage:
    """The error for a run without a change set. It says why there is nothing to undo, redo, apply or drop."""
    changes = record.record["changes"]
    if record.is_open:
        return BadUsage(f"{record.id} has not ended yet", hint=f"`haft watch {record.id}` follows it")
    about = record.record["arguments"].get("runs") if record.tool in ("undo", "redo", "apply", "drop") else None
    hint = f"it acted on the changes of {' '.join(map(str, about))}" if isinstance(about, list) else hint
    if changes["state"] == "discarded":
        return BadUsage(f"there is nothing to {verb}: the changes of {record.id} were dropped", hint=hint)
    if not changes["complete"]:
        reason = changes["reason"]
        return BadUsage(f"there is nothing to {verb}: the changes of {record.id} are not known ({reason})", hint=hint)
    if changes["files"]:
        return BadUsage(f"there is nothing to {verb}: the changes of {record.id} were not stored", hint=hint)
    return BadUsage(f"there is nothing to {verb}: {record.id} changed nothing", hint=hint)


def _with_nested(ledger: Ledger, name: str, direction: Direction, made: Sequence[str]) -> list[Row]:
    """The change sets of a run and of the calls that it made. Leaves out nested calls that cannot be undone or redone
    now."""
    state = "committed" if direction == "undo" else "undone"
    below = {row.run: row for one in (name, *made) for row in _below(ledger, one, name)}
    children = [row for row in below.values() if row.state == state and row.files]
    children = [row for row in children if not _undone_by_cancel(ledger, row)]
    try:
        own = ledger.find(name)
    except HaftError:
        if not below and not made:
            raise
        return children
    # The changes of the nested calls can be undone or redone even if the run's own changes cannot.
    return [own, *children] if own.state == state or not children else children


def _undone_by_cancel(ledger: Ledger, row: Row) -> bool:
    """Whether the changes were undone because the calling run was cancelled. A redo does not restore such changes."""
    by = ledger.get(row.latest) if row.state == "undone" else None
    return by is not None and by.parent is not None


def _below(ledger: Ledger, run: str, top: str) -> list[Row]:
    """The change sets of the calls that `run` made, and of `run` itself if it is not `top`, the run that a person
    named."""
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
    """The change sets that an undo or redo reverses: those of the named `runs` and of all calls that these runs made.
    An undo without named runs takes the runs of `thread`, or without a thread the last run of the user `who`. `made_by`
    returns all calls that a run made, directly or not, because a run that changed nothing itself may have called a tool
    that changed files."""
    found: list[Row] = []
    for name in runs:
        found += _with_nested(ledger, name, direction, [*made_by(name)])
    if thread is not None:
        found += ledger.of_thread(workspace, thread)
        if not found:
            raise BadUsage(f"there is nothing to undo in thread {thread}")
    if not runs and thread is None:
        if direction == "redo":
            raise BadUsage("`redo` needs the run that was undone", hint="`haft log` lists the runs")
        last = ledger.last(workspace, who)
        if last is None:
            raise BadUsage(
                f"there is nothing to undo in {workspace}: {who} has no run there with changes to undo",
                hint="`haft log` lists the runs; to undo a run of someone else, name it",
            )
        found.append(last)
    if not found:
        raise BadUsage(f"there is nothing to {direction} in {', '.join(runs)}")
    unique = list({row.run: row for row in found}.values())
    places = {row.workspace for row in unique}
    if len(places) > 1:
        raise BadUsage("these runs changed different workspaces", hint="undo the runs of each workspace separately")
    return unique


def with_batches(names: Iterable[str], ledger: Ledger, history: History, direction: Direction = "undo") -> list[str]:
    """The names of runs, with each batch among them replaced by those of its runs that changed something. Raises
    `BadUsage` if no run of a batch did."""
    found: list[str] = []
    for name in names:
        if not is_batch_id(name):
            found.append(name)
            continue
        state = "committed" if direction == "undo" else "undone"
        members = history.of_batch(name)
        if is_open := [run.id for run in members if run.is_open]:
            raise BadUsage(
                f"{name} has not ended: {len(is_open)} of its calls have not",
                hint=f"wait for its end, or cancel it: `haft cancel {name}`",
            )
        runs = [run.id for run in members]
        changed = [
            run
            for run in runs
            if any(row.state == state and row.files for row in _rows_of(ledger, (run, *history.made_by(run))))
        ]
        if not changed:
            raise BadUsage(f"there is nothing to {direction} in {name}: none of its calls has changes to {direction}")
        found += changed
    return found


def _rows_of(ledger: Ledger, runs: Iterable[str]) -> Iterator[Row]:
    for run in runs:
        row = ledger.get(run)
        yield from () if row is None else (row,)
        yield from ledger.of_parent(run)


def changed_since(ledger: Ledger, workspace: str, thread: str | None, since: float) -> list[Row]:
    """The change sets that calls committed in a workspace since a time and that are not undone; with `thread`, only
    those of this thread. Raises `BadUsage` if there are none."""
    if thread is not None:
        rows = ledger.of_thread(workspace, thread)
    else:
        rows = [row for row in ledger.all(workspace, "committed") if row.verb == "call" and row.files]
    found = [row for row in rows if row.at >= since]
    if not found:
        where = f"thread {thread}" if thread is not None else workspace
        raise BadUsage(
            f"there is nothing to undo in {where} since {iso_time(since)}", hint="`haft log --since T` lists the runs"
        )
    return found
