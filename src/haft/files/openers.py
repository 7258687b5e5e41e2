"""Files that only their owner can read."""

from __future__ import annotations

import os


def owner_only(path: str, flags: int) -> int:
    """An `opener` for `open`: if it creates the file, only the owner can read and write it."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
