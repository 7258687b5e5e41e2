"""After a host was killed: its acknowledged runs are carried over, its open ones end as `interrupted`.

Done by whoever takes over the dead host's lease, the audit log first. Dying in the middle of it leaves the lease to the
next one, and doing a step twice changes nothing: the audit log is asked which ends it has.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Final

from haft.contracts import Failure, HostId
from haft.runs.entry import RunRecord
from haft.runs.journal import is_damaged, journal_paths, journalled, log_position
from haft.storage import Lease, RunStore, StateHome, open_stores

INTERRUPTED = Failure(
    "interrupted",
    "the host was killed before the run ended",
    "what it did until then may have happened: look before you call again",
    retryable=True,
)

Tell = Callable[[Sequence[bytes], int], None]
"""Who must know of ended runs before the table does, in its own words; it passes over those that the audit log has from
a position on."""

BEGAN: Final = "recoveryBegan"
"""Among the facts of a dead host's lease: where the audit log ended when the first one took over."""


def recover(
    home: StateHome, own: HostId | None, tell: Tell, before: Callable[[Lease], None] = lambda _lease: None
) -> int:
    """Clean up after every dead host; how many runs were interrupted. `before` is told of each first, under its
    lease."""
    interrupted = 0
    stores = open_stores(home)
    for lease in stores.leases().dead(own):
        done = False
        connection = stores.connect(lease)
        try:
            with contextlib.suppress(OSError):  # One host's broken files keep nobody from the others.
                before(lease)
                interrupted += _recover_host(home, connection.runs, lease, tell)
                done = True
        finally:
            connection.close()
            lease.release(done=done)  # Where it failed, the next one may try.
    return interrupted


def _recover_host(home: StateHome, store: RunStore, lease: Lease, tell: Tell) -> int:
    host = lease.host
    paths = journal_paths(home.hosts, host)
    if BEGAN not in lease.facts:
        with contextlib.closing(open_stores(home).audit_log()) as log:
            lease.tell({BEGAN: log.size() if log.exists() else 0})
    # A run's end comes into the log after the journal has it, or while a host is recovered.
    since = min([int(lease.facts[BEGAN]), *map(log_position, paths)])
    entries = [entry for path in paths for entry in journalled(path)]
    if entries:
        tell([entry.record for entry in entries if not entry.is_open], since)
        store.put([entry.line for entry in entries])
    now = time.time()
    left = map(RunRecord.from_text, store.open_runs(host))
    interrupted = [run.ended("error", INTERRUPTED.to_json(), now).to_entry() for run in left]
    if interrupted:
        tell([entry.record for entry in interrupted], since)
        store.put([entry.line for entry in interrupted])
    for path in paths:
        if is_damaged(path):
            os.rename(path, f"{path}.damaged")  # What could be read was; nothing is thrown away.
        else:
            os.unlink(path)
    return len(interrupted)
