"""Checks before an upgrade of the database format that no host of another version uses the database."""

from __future__ import annotations

import os

from haft.contracts import BadConfig
from haft.files import holder_of
from haft.storage.home import StateHome
from haft.storage.sqlite.leases import live_hosts
from haft.storage.sqlite.migrations import MIGRATIONS


def require_no_other_host(home: StateHome, version: int) -> None:
    """Raise `BadConfig` if any living host does not know the new format; the error names the process to end. Call this
    inside the transaction that migrates: an older host that starts meanwhile finds the new format, and refuses to
    run."""
    for host, facts in live_hosts(home.hosts):
        if facts.get("format") == len(MIGRATIONS):
            continue
        # Hosts of the first format publish no facts.
        lock = os.path.join(home.hosts, f"{host}.lock")
        pid = facts.get("pid") or holder_of(lock)
        process = f"process {pid}" if pid else f"the process that locks {lock}"
        other = f"haft {facts['version']}" if "version" in facts else "an earlier haft"
        raise BadConfig(
            f"{home.database} has format {version} and must be upgraded to {len(MIGRATIONS)}, "
            f"but {process} of {other} uses it",
            hint=f"end {process}, or set HAFT_HOME to another directory",
        )
