"""After hosts that were killed: what every process does before it reads, and every host before it begins."""

from __future__ import annotations

from collections.abc import Callable

from haft.audit import Trail
from haft.runs import recover
from haft.storage import Lease, StateHome


def recover_into(home: StateHome, lease: Lease | None, trail: Callable[[], Trail]) -> int:
    """End the open runs of hosts that were killed, and complete the audit log; how many there were. The `trail` is
    opened where a run has ended: whoever only reads, and may not be able to write, mostly needs none."""
    return recover(
        home,
        None if lease is None else lease.host,
        lambda ends, since: trail().append_missing(ends, since),
        lambda dead: _recover_changes(home, dead),
    )


def _recover_changes(home: StateHome, lease: Lease) -> None:
    """Loaded where a host was killed: who only reads runs needs nothing of changes otherwise."""
    from haft.service.changes import recover_changes

    recover_changes(home, lease)
