"""The eight statuses of a run, and which status may follow which.

Statuses are plain strings, the same in JSON, the audit log, MCP and HTTP.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Status = Literal[
    "queued",
    "blocked-on-user",
    "in-progress",
    "done",
    "error",
    "rejected-by-user",
    "cancellation-requested",
    "cancelled",
]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)

TERMINAL: Final[frozenset[str]] = frozenset({"done", "error", "rejected-by-user", "cancelled"})
"""The statuses in which a run ends. A run reaches exactly one of them, and then never changes."""

NEXT_STATUSES: Final[dict[str, frozenset[str]]] = {
    "queued": frozenset(
        {"blocked-on-user", "in-progress", "cancellation-requested", "done", "error", "rejected-by-user", "cancelled"}
    ),
    "blocked-on-user": frozenset(
        {"queued", "in-progress", "cancellation-requested", "error", "rejected-by-user", "cancelled"}
    ),
    "in-progress": frozenset({"done", "error", "cancellation-requested", "blocked-on-user", "queued"}),
    "cancellation-requested": frozenset({"cancelled", "done", "error"}),
    "done": frozenset(),
    "error": frozenset(),
    "rejected-by-user": frozenset(),
    "cancelled": frozenset(),
}
"""The statuses that may follow each status. After `cancellation-requested`, a run may still end as `done` or `error`,
because the tool ended before the request took effect, or because the host died."""
