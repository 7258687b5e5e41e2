"""Notes about temporarily widened modes, written first: after a kill they tell the original modes.

Only ordinary users need them; root can open every directory. A note is not the journal of a commit: it is also written
when something is only read.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from typing import Final

TEMPORARY_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors of a machine that lacks space or resources at the moment."""
NOTE_SUFFIX: Final = ".opened"
"""The suffix of note files in the directory of a host's transactions."""


class WidenedModes:
    """The notes of one use of a tree."""

    def __init__(self, directory: str) -> None:
        """`directory` holds the host's transactions."""
        self._directory = directory
        self._place: str | None = None
        self._is_owed = False
        self.is_required = True
        """Whether a mode may be widened only if the note can be written. Reverting goes on without a note: a full disk
        must not stop it."""

    def note(self, root: str, path: str, mode: int, inode: int) -> None:
        """Note a mode. Call it before the mode is widened."""
        if self._place is None:
            self._place = os.path.join(self._directory, f"{os.urandom(8).hex()}{NOTE_SUFFIX}")
        words = [os.fsencode(root).decode("latin-1"), os.fsencode(path).decode("latin-1"), mode, inode]
        try:
            _append(self._place, json.dumps(words).encode() + b"\n")
        except OSError:
            if self.is_required:
                raise

    def mark_unrestored(self, error: OSError) -> None:
        """Record that a mode could not be restored. After a disk error the note stays for recovery."""
        self._is_owed = self._is_owed or error.errno in TEMPORARY_ERRORS

    def clear(self) -> None:
        """Remove the note, unless a mode could not be restored."""
        if self._place is not None and not self._is_owed:
            with contextlib.suppress(OSError):  # It may not exist: the disk may have been full.
                os.unlink(self._place)
        self._place, self._is_owed = None, False


def _append(place: str, line: bytes) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_notes(directory: str) -> Iterator[tuple[str, str, int, int]]:
    """The notes of a dead host, innermost paths first: root, path, mode and inode."""
    found = []
    for name in os.listdir(directory):
        if name.endswith(NOTE_SUFFIX):
            with open(os.path.join(directory, name), "rb") as file:
                lines = file.read().split(b"\n")[:-1]  # A last, incomplete line had no effect.
            for root, path, mode, inode in map(json.loads, lines):
                found.append((os.fsdecode(root.encode("latin-1")), os.fsdecode(path.encode("latin-1")), mode, inode))
    yield from sorted(found, key=lambda each: each[1].count("/"), reverse=True)
