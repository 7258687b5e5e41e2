"""The outputs of old runs: how much of the disk outputs take, and removing those that nobody has written to for long.

They lie in groups, by the part of a run's name that time moves (see `kept`): a group that is old gets no new files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outputs:
    """So many files, and the bytes of the disk they take."""

    files: int = 0
    bytes: int = 0


def outputs_in(outputs: str, before: float | None = None) -> Outputs:
    """Of all runs, or of those whose output was last written to before a time."""
    sizes = [status.st_blocks * 512 for _path, status in _files(outputs) if before is None or status.st_mtime < before]
    return Outputs(len(sizes), sum(sizes))


def remove_outputs(outputs: str, before: float) -> Outputs:
    """Remove what was last written to before a time."""
    removed = size = 0
    # A group that was touched lately may be about to get its first file; removing one touches it.
    groups = [group.path for group in _inside(outputs) if group.stat(follow_symlinks=False).st_mtime < before]
    for path, status in _files(outputs):
        if status.st_mtime < before:
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += 1
                size += status.st_blocks * 512
    for group in groups:
        with contextlib.suppress(OSError):
            os.rmdir(group)
    return Outputs(removed, size)


def _files(outputs: str) -> Iterator[tuple[str, os.stat_result]]:
    for group in _inside(outputs):
        if group.is_dir(follow_symlinks=False):
            for entry in _inside(group.path):
                with contextlib.suppress(FileNotFoundError):
                    yield entry.path, entry.stat(follow_symlinks=False)


def _inside(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:
        return []
