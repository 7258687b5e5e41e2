"""The limits of the store, and whether maintenance is due. Every host checks whether maintenance is due, but few hosts
find that it is. So this module imports very little."""

from __future__ import annotations

import os
import time
from typing import Final

from haft.changes.ledger import Ledger
from haft.values import dataclass

LOCK: Final = "tidying"
"""The name of a file in the directory for all workspaces. A maintenance pass locks this file. It holds the sequence
number of the newest change set at the last pass."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many bytes the store may keep, and for how many days."""

    bytes: int
    days: float
    rest_days: float = 1.0
    """Originals older than this are packed into the blob store. If half of the bytes are used, all are packed."""


def is_due(home: str, ledger: Ledger, commits: int, seconds: float) -> bool:
    """Whether the last maintenance pass was at least `commits` commits or `seconds` seconds ago. `home` is the
    directory for all workspaces."""
    try:
        with open(os.path.join(home, LOCK), "rb") as file:
            seen, at = int(file.read() or 0), os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError):
        return True
    return not 0 <= time.time() - at < seconds or len(ledger.since(seen)) >= commits
