"""After hosts that were killed: what every process does before it reads, and every host before it begins."""

from __future__ import annotations

from haft.audit import Trail
from haft.runs import Lease, recover
from haft.service.changes import recover_changes
from haft.storage import StateHome


def recover_into(home: StateHome, lease: Lease | None, trail: Trail) -> int:
    """End the open runs of hosts that were killed, and complete the record; how many there were."""
    return recover(
        home, None if lease is None else lease.host, trail.append_missing, lambda host: recover_changes(home, host)
    )
