"""Finds a sub-agent that makes the same call again and again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from haft.contracts import Outcome

POINTED_OUT: Final = 3
"""After how many equal calls with equal outcomes the model is told."""
ENDED: Final = 5
"""After how many of them the task ends."""


class Repeats:
    """Counts equal calls with equal outcomes, since a call last changed a file."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, tool: str, arguments: Mapping[str, Any], outcome: Outcome) -> int:
        """How often this call has now been made with this outcome."""
        if outcome.changes.files:
            self._counts.clear()
        known = json.dumps(
            [tool, arguments, outcome.status, outcome.output, outcome.error and outcome.error.code],
            sort_keys=True, default=str,
        )  # fmt: skip
        key = hashlib.sha256(known.encode("utf-8", "surrogateescape")).hexdigest()
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key]


def pointed_out(count: int) -> str:
    """What the model is told about a call that it repeats."""
    return (
        f"You have made this same call {count} times, and nothing has changed. Do something else. After {ENDED} times, "
        "your task ends."
    )
