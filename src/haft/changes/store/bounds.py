"""How much the store may keep, and whether it is time to see to it. Every host asks, and few have to do anything: so
nothing more than that is loaded for it."""

from __future__ import annotations

import os
import time
from typing import Final

from haft.changes.ledger import Ledger
from haft.values import dataclass

LOCK: Final = "tidying"
"""In the directory for all workspaces: the lock of a pass, and how far the list had come at the last one."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be kept."""

    bytes: int
    days: float
    rest_days: float = 1.0
    """What is older is packed; and everything is when half of the bytes are used."""


def is_due(home: str, ledger: Ledger, commits: int, seconds: float) -> bool:
    """Whether the last pass was so many commits, or so many seconds, ago."""
    try:
        with open(os.path.join(home, LOCK), "rb") as file:
            seen, at = int(file.read() or 0), os.fstat(file.fileno()).st_mtime
    except (OSError, ValueError):
        return True
    return not 0 <= time.time() - at < seconds or len(ledger.since(seen)) >= commits
