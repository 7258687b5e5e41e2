"""Records calls of agents' own tools in places where there is no workspace, such as the home directory. haft does not
act there: such a call is only in the audit log."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from haft.audit import Redactor, Trail, secret_values
from haft.contracts import Principal, own_copy
from haft.storage import StateHome, open_stores


def record_uncovered(
    home: StateHome, agent: str, session: str, tool: str, arguments: Mapping[str, Any], cwd: str, reason: str
) -> None:
    """Write into the audit log that haft did not cover a call. Raises `StorageFailed` if that is not possible."""
    home.prepare()
    trail = Trail(open_stores(home).audit_log(), Redactor(secret_values(os.environ)))
    try:
        principal = Principal(agent, thread=session or None, kind="agent")
        trail.record_uncovered(principal, f"{agent}:{tool}", own_copy(arguments), cwd, reason)
    finally:
        trail.close()
