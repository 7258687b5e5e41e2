"""The limits of the store, and whether maintenance is due. Every host checks this, and few hosts have work to do: so
this module imports very little."""

from __future__ import annotations

import os
import time
from typing import Final

from haft.changes.ledger import Ledger
from haft.values import dataclass

LOCK: Final = "tidying"
"""A file in the directory for all workspaces: the lock of a maintenance pass, with the ledger's newest number at the
last pass."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much, and how long, the store may keep."""

    bytes: int
    days: float
    rest_days: float = 1.0
    """Older originals are packed; all originals are packed if half of the bytes are used."""


def is_due(home: str, ledger: Ledger, commits: int, seconds: float) -> bool:
    """Whether the last pass was at least `commits` commits or `seconds` seconds ago."""
    try:
        with open(os.path.join(home, LOCK), "rb") as file:
            seen, at = int(file.read() or 0), os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError):
        return True
    return not 0 <= time.time() - at < seconds or len(ledger.since(seen)) >= commits
