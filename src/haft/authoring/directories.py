"""Creates directories that their owner can use even if the umask says otherwise, and removes them again after a
failure."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress


def make_directories(path: str) -> list[str]:
    """Create a directory and its missing parents; return the created ones, the outermost first."""
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
    """Create one directory. The umask applies, but the owner always gets full rights."""
    os.mkdir(path, 0o755)
    let_owner_in(path, stat.S_IRWXU)


def let_owner_in(path: str, bits: int) -> None:
    """Add the permission bits `bits` to a new file or directory for its owner, if the umask removed them."""
    mode = os.lstat(path).st_mode
    if mode & bits != bits and not stat.S_ISLNK(mode):
        os.chmod(path, stat.S_IMODE(mode) | bits)


def unmake_directories(made: Sequence[str]) -> None:
    """Remove the directories that `make_directories` created. Those that are not empty stay."""
    for one in reversed(made):
        with suppress(OSError):
            os.rmdir(one)
