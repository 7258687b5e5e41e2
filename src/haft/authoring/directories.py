"""Directories that are made on the way to something: usable by their owner whatever the umask, and taken back."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress


def make_directories(path: str) -> list[str]:
    """Make a directory and those above it that are missing; what was made, the outermost first."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    made = []
    try:
        for one in reversed(missing):
            with suppress(FileExistsError):
                make_directory(one)
                made.append(one)
    except BaseException:
        unmake_directories(made)
        raise
    return made


def make_directory(path: str) -> None:
    """Make one. The umask counts, except for what the owner needs."""
    os.mkdir(path, 0o755)
    let_owner_in(path, stat.S_IRWXU)


def let_owner_in(path: str, bits: int) -> None:
    """Give the owner the rights that an umask took from what was just made."""
    mode = os.lstat(path).st_mode
    if mode & bits != bits and not stat.S_ISLNK(mode):
        os.chmod(path, stat.S_IMODE(mode) | bits)


def unmake_directories(made: Sequence[str]) -> None:
    """Remove what was made, for a caller that failed after it; what holds something stays."""
    for one in reversed(made):
        with suppress(OSError):
            os.rmdir(one)
