"""Which file it is, so that a change of it is seen."""

from __future__ import annotations

import os


def identity_of(found: os.stat_result) -> str:
    """What changes when a file does."""
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def identity_at(path: str) -> str | None:
    """The identity of the file at a path, links followed; None where there is none."""
    try:
        return identity_of(os.stat(path))
    except (OSError, ValueError):
        return None
