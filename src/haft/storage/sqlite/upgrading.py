"""Before the database gets the format of a newer haft: no host of another version may be at work on it."""

from __future__ import annotations

import os

from haft.contracts import BadConfig
from haft.files import holder_of
from haft.storage.home import StateHome
from haft.storage.sqlite.leases import live_hosts
from haft.storage.sqlite.migrations import MIGRATIONS


def require_no_other_host(home: StateHome, version: int) -> None:
    """`BadConfig` where a host lives that does not know the new format; it names the process to end. Call it inside the
    transaction that migrates: a host that starts meanwhile finds the new format, and refuses it itself."""
    for host, facts in live_hosts(home.hosts):
        if facts.get("format") == len(MIGRATIONS):
            continue
        # Hosts of the first format tell nothing of themselves.
        lock = os.path.join(home.hosts, f"{host}.lock")
        pid = facts.get("pid") or holder_of(lock)
        process = f"process {pid}" if pid else f"the process that locks {lock}"
        other = f"haft {facts['version']}" if "version" in facts else "an earlier haft"
        raise BadConfig(
            f"{home.database} has format {version} and must be brought to {len(MIGRATIONS)}, "
            f"while {process} of {other} works on it",
            hint=f"end {process}, or set HAFT_HOME to another directory",
        )
