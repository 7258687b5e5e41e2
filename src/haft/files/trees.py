"""Measures and removes haft's own directories that calls have filled.

Calls decide what such a directory contains, so this module follows no link and opens no file in it.
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
    """The number of files and directories below a path, and their size on disk. Directories that we may not read, or
    that are deeper than `DEEPEST`, are not counted."""
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
    """Remove a directory with everything in it, whatever modes a call gave it, and however deep it is."""
    with contextlib.suppress(RecursionError):
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        with contextlib.suppress(OSError):
            _flatten(path)


def _flatten(path: str) -> None:
    """Empty a directory whose content is unreadable or too deep for `rmtree`: move each inner directory up to the top
    and remove it there. So no path has more than two names."""
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
    """Remove the file or directory `name`. The directories in it are not removed, but moved up to the top, with numbers
    from `count` on in their new names. Returns the next free number."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return count
    os.chmod(name, 0o700, dir_fd=top)  # Safe: no other process can replace it by a link here.
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
