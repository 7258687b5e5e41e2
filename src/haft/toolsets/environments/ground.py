"""The directory in which haft downloads and installs packages before it moves them to their place. No call can reach
it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final

from haft.sandbox import CACHES, home_of, is_below

CACHE: Final = "cache"
"""The name of the download cache in the directory."""


@contextlib.contextmanager
def download_ground(env: Mapping[str, str], workspace: str, state_home: str, *names: str) -> Iterator[str]:
    """A context manager that yields a directory with a directory `CACHE` in it, below the person's data directory and
    `names`. It is a temporary directory if calls could reach the data directory, or if it belongs to somebody else."""
    data = env.get("XDG_DATA_HOME", "")
    home = home_of(env)
    data = os.path.realpath(data if os.path.isabs(data) else os.path.join(home, ".local", "share"))
    ground = os.path.join(data, "haft", *names)
    reached = (workspace, state_home, *(os.path.realpath(os.path.join(home, at)) for at in CACHES.values()))
    if not is_below(ground, reached):
        with contextlib.suppress(OSError):
            os.makedirs(os.path.join(ground, CACHE), mode=0o700, exist_ok=True)
        if is_ours(ground):
            yield ground
            return
    with tempfile.TemporaryDirectory(prefix=f"haft-{names[0]}-", ignore_cleanup_errors=True) as passing:
        yield os.path.realpath(passing)


def is_ours(folder: str) -> bool:
    """Whether this user owns the folder and can write to it. The right to write alone is not enough, because root can
    write everywhere."""
    try:
        return os.stat(folder).st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False
