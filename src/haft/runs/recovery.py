"""Recovers the runs of a host that was killed: copies its acknowledged runs, and ends its open ones as `interrupted`,
except for those that another host can go on with.

Each host has a lease, which says that only this host may write its runs. The process that takes over a dead host's
lease recovers the runs, and writes the audit log first. If this process dies meanwhile, the next process takes the
lease. Doing a step twice changes nothing, since each step checks which runs have already ended according to the audit
log.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Final

from haft.contracts import Failure, HostId
from haft.runs.entry import RunRecord
from haft.runs.journal import is_damaged, journal_paths, log_position, read_journal
from haft.runs.paused_runs import waiting_trees
from haft.storage import Lease, RunStore, StateHome, open_stores

INTERRUPTED = Failure(
    "interrupted",
    "the host was killed before the run ended",
    "it may have changed something before that: check before you call it again",
    retryable=True,
)

LogRecords = Callable[[Sequence[bytes], int], None]
"""Writes the records of ended runs to the audit log, before the table gets the runs. Skips records that the log already
has after the given position."""

BEGAN: Final = "recoveryBegan"
"""The name of a fact in a dead host's lease: the size of the audit log when the first process took the lease over."""


def recover(
    home: StateHome, own: HostId | None, log_records: LogRecords, before: Callable[[Lease], None] = lambda _lease: None
) -> int:
    """Recover the runs of every dead host, and return the number of runs that ended as `interrupted`. `before` is
    called with the lease of each dead host before its runs are recovered."""
    interrupted = 0
    stores = open_stores(home)
    for lease in stores.leases().dead(own):
        done = False
        connection = stores.connect(lease)
        try:
            with contextlib.suppress(OSError):  # Broken files of one host must not stop the recovery of others.
                before(lease)
                interrupted += _recover_host(home, connection.runs, lease, log_records)
                done = True
        finally:
            connection.close()
            lease.release(done=done)  # If it failed, the next process may try again.
    return interrupted


def _recover_host(home: StateHome, store: RunStore, lease: Lease, log_records: LogRecords) -> int:
    host = lease.host
    paths = journal_paths(home.hosts, host)
    if BEGAN not in lease.facts:
        with contextlib.closing(open_stores(home).audit_log()) as log:
            lease.tell({BEGAN: log.size() if log.exists() else 0})
    # The log gets the end of a run only after the journal has it, or during a recovery.
    since = min([int(lease.facts[BEGAN]), *map(log_position, paths)])
    entries = [entry for path in paths for entry in read_journal(path)]
    if entries:
        log_records([entry.record for entry in entries if not entry.is_open], since)
        store.put([entry.line for entry in entries])
    now = time.time()
    left = [*map(RunRecord.from_text, store.open_runs(host))]
    stay = waiting_trees(left)
    waiting = [run.waiting(now).to_entry() for run in left if run.id in stay and run.status != "blocked-on-user"]
    if waiting:
        store.put([entry.line for entry in waiting])
    ended = (run for run in left if run.id not in stay)
    interrupted = [run.ended("error", INTERRUPTED.to_json(), now).to_entry() for run in ended]
    if interrupted:
        log_records([entry.record for entry in interrupted], since)
        store.put([entry.line for entry in interrupted])
    for path in paths:
        if is_damaged(path):
            os.rename(path, f"{path}.damaged")  # The readable lines were copied; keep the rest for a person.
        else:
            os.unlink(path)
    return len(interrupted)
