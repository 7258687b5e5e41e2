"""Paused runs whose host has ended, as any process sees them: finds them, and ends them. A host goes on with them: see
`facades/paused_runs`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from typing import Literal

from haft.audit import Redactor, Trail, secret_values
from haft.contracts import BadUsage, Failure, Principal, Rejected, RunId, new_host_id
from haft.policy import Inbox
from haft.runs import History, RunRecord, asked_by
from haft.service.principals import to_text
from haft.storage import StateHome, open_stores

CANCELLED = Failure("cancelled", "the run was cancelled while it waited for a person")


def is_waiting(home: StateHome, record: RunRecord) -> bool:
    """Whether a run waits for a person, and its host has ended."""
    waits = record.is_open and record.status == "blocked-on-user" and record.paused is not None
    return waits and not open_stores(home).leases().is_alive(record.host)


def open_tree(history: History, record: RunRecord) -> list[RunRecord]:
    """A run and all runs below it that have not ended."""
    below = (history.find(name) for name in history.made_by(record.id))
    return [record, *(each for each in below if each.is_open)]


def root_of(history: History, record: RunRecord) -> RunRecord:
    """The outermost run that waits for a run, or the run itself."""
    while record.parent is not None:
        record = history.find(record.parent)
    return record


def end_waiting(
    home: StateHome,
    record: RunRecord,
    status: Literal["cancelled", "rejected-by-user"],
    principal: Principal,
    message: str | None = None,
) -> bool:
    """End a run that waits for a person without a host, and all runs below it. Returns False if another process has
    taken it over meanwhile. The runs that wait for it stay open."""
    with contextlib.closing(History(home)) as history:
        tree = open_tree(history, record)
    if status == "cancelled":
        failure = CANCELLED
    else:
        failure = Rejected(f"`{record.tool}` was rejected: {message or f'{principal.who} rejected it'}").failure()
    stores = open_stores(home)
    with contextlib.closing(stores.connect()) as connection:
        # Under the name of a host that never lived, so that no other process goes on with the runs meanwhile.
        if not connection.runs.take_over([each.id for each in tree], record.host, new_host_id()):
            return False
        now = time.time()
        entries = [each.ended(status, failure.to_json(), now).to_entry() for each in tree]
        trail = Trail(stores.audit_log(), Redactor(secret_values(os.environ)), record.record["workspace"])
        with contextlib.closing(trail):
            if status == "cancelled":
                trail.record_act("cancel", principal, record.id, record.tool)
            trail.append([entry.record for entry in entries])
        connection.runs.put([entry.line for entry in entries])
        close_requests(Inbox(connection), tree)
    return True


def request_cancel(home: StateHome, history: History, runs: Iterable[RunRecord], principal: Principal) -> None:
    """Ask the hosts of open runs to cancel these runs, and end those that wait for a person without a host. The audit
    log names `principal` as the one who cancelled."""
    for run in runs:
        if run.is_open and not (is_waiting(home, run) and end_waiting(home, run, "cancelled", principal)):
            history.request_cancel(run.id, to_text(principal))


def close_requests(inbox: Inbox, records: Iterable[RunRecord]) -> None:
    """Close the requests of runs that have ended."""
    for record in records:
        if (asked := asked_by(record)) is not None:
            inbox.end(asked.request)
            inbox.end(asked.request, "taken")


def cannot_resume(record: RunRecord, run: RunId | str) -> BadUsage:
    """Why a run cannot be resumed."""
    if not record.is_open:
        return BadUsage(f"{run} has ended: {record.status}", hint=f"`haft show {run}` says how")
    if record.paused is None:
        return BadUsage(f"{run} cannot be resumed: it ends with the process that made the call")
    return BadUsage(
        f"{run} cannot be resumed here: another process is at work on it",
        hint=f"`haft inbox` shows what it asks, and `haft approve {run}` answers it",
    )
