"""The life of a run in eight words, and which may follow which.

The words are plain strings: they travel unchanged to JSON, the audit log, MCP and HTTP.
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
"""A run ends in exactly one of these, and never leaves it."""

FOLLOWS: Final[dict[str, frozenset[str]]] = {
    "queued": frozenset(
        {"blocked-on-user", "in-progress", "cancellation-requested", "done", "error", "rejected-by-user", "cancelled"}
    ),
    "blocked-on-user": frozenset({"queued", "in-progress", "cancellation-requested", "error", "rejected-by-user"}),
    "in-progress": frozenset({"done", "error", "cancellation-requested", "blocked-on-user", "queued"}),
    "cancellation-requested": frozenset({"cancelled", "done", "error"}),
    "done": frozenset(),
    "error": frozenset(),
    "rejected-by-user": frozenset(),
    "cancelled": frozenset(),
}
"""What may come after each status. `cancellation-requested` may still end `done` or `error` where the tool was
faster than the request, or where the host died meanwhile."""
