"""Recovers the runs of killed hosts. Every process does this before it reads the state home, and every host when it
starts."""

from __future__ import annotations

from collections.abc import Callable

from haft.audit import Trail
from haft.runs import recover
from haft.storage import Lease, StateHome


def recover_into(home: StateHome, lease: Lease | None, trail: Callable[[], Trail]) -> int:
    """End the open runs of killed hosts, record the end of each run in the audit log, and return how many such runs
    there were. `trail` opens the audit log for writing. It is called only if there is such a run, because a process
    that only reads may have no right to write."""
    return recover(
        home,
        None if lease is None else lease.host,
        lambda ends, since: trail().append_missing(ends, since),
        lambda dead: _recover_changes(home, dead),
    )


def _recover_changes(home: StateHome, lease: Lease) -> None:
    """Recover the changes of a killed host. The import is here, because processes that only read runs do not need
    `changes`."""
    from haft.service.changes import recover_changes

    recover_changes(home, lease)
