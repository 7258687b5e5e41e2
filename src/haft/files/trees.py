"""Directories of ours that calls have filled: how much is in one, and removing it.

No link in them is followed and no file in them is opened: calls decide what lies there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Final

DEEPEST: Final = 400
_INSIDE: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK: Final = 512


def measured(path: str) -> tuple[int, int]:
    """How many files and directories lie below, and the bytes of the disk that they take. What is closed to us, or lies
    deeper than `DEEPEST`, is not counted."""
    files = size = 0
    seen: set[int] = set()
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        top = os.open(path, _INSIDE)
        opened.callback(os.close, top)
        waiting = [(top, _names(top))]
        while waiting:
            place, names = waiting[-1]
            if not names:
                waiting.pop()
                if place != top:
                    os.close(place)
                continue
            with contextlib.suppress(OSError):
                name = names.pop()
                found = os.stat(name, dir_fd=place, follow_symlinks=False)
                files += 1
                if found.st_ino not in seen:
                    size += found.st_blocks * _BLOCK
                if found.st_nlink > 1:
                    seen.add(found.st_ino)
                if stat.S_ISDIR(found.st_mode) and len(waiting) < DEEPEST:
                    below = os.open(name, _INSIDE, dir_fd=place)
                    waiting.append((below, _names(below)))
    return files, size


def _names(directory: int) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def remove(path: str) -> None:
    """A directory of ours with everything in it, whatever modes the call gave it, however deep."""
    with contextlib.suppress(RecursionError):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        with contextlib.suppress(OSError):
            _flatten(path)


def _flatten(path: str) -> None:
    """Empty a directory whose insides are closed or too deep for others: each directory comes up to the top, and goes
    there. No path is ever longer than two names."""
    top = os.open(path, _INSIDE)
    os.fchmod(top, 0o700)
    try:
        count = 0
        while names := os.listdir(top):
            for name in names:
                count = _empty(top, name, count)
    finally:
        os.close(top)
    os.rmdir(path)


def _empty(top: int, name: str, count: int) -> int:
    """Remove a file, or a directory once its directories have come up to the top."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return count
    os.chmod(name, 0o700, dir_fd=top)  # A directory: nobody else is here who could put a link in its place.
    inner = os.open(name, _INSIDE, dir_fd=top)
    try:
        with os.scandir(inner) as found:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        for below, is_directory in entries:
            if is_directory:
                os.chmod(below, 0o700, dir_fd=inner)
                os.rename(below, f"{os.getpid()}.{count}.up", src_dir_fd=inner, dst_dir_fd=top)
                count += 1
            else:
                os.unlink(below, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return count
