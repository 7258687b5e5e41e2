"""Measures the stored outputs of runs, and removes those of old runs.

Outputs are in group directories by the time in a run's name (see `kept_output`), so an old group gets no new files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from haft.contracts import RunId


@dataclass(frozen=True, slots=True)
class Outputs:
    """The number of files with outputs, and their size on disk in bytes."""

    files: int = 0
    bytes: int = 0


def outputs_in(outputs: str, before: float | None = None) -> Outputs:
    """The number and size of all stored outputs, or only of those that were last written before the time `before`."""
    sizes = [status.st_blocks * 512 for _path, status in _files(outputs) if before is None or status.st_mtime < before]
    return Outputs(len(sizes), sum(sizes))


def remove_outputs(outputs: str, before: float) -> Outputs:
    """Remove the outputs that were last written before the time `before`, and return the number and size of the removed
    files."""
    removed = size = 0
    # Keep recently changed groups, which may be about to get their first file. Check this before files are removed,
    # since that changes the groups' times.
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


def remove_output_of(outputs: str, run: RunId) -> None:
    """Remove the output of one run, if there is any."""
    for entry in _inside(os.path.join(outputs, run[2:8])):
        if entry.name.startswith(f"{run}."):
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


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
