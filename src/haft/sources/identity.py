"""The identity of a file: a text that changes when the file is replaced or modified."""

from __future__ import annotations

import os


def identity_of(found: os.stat_result) -> str:
    """The identity of a file, from its stat."""
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def identity_at(path: str) -> str | None:
    """The identity of the file at a path, following links; None if there is no file."""
    try:
        return identity_of(os.stat(path))
    except (OSError, ValueError):
        return None
