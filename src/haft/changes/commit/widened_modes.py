"""Notes about modes that haft widens for a moment to get access to a file or directory.

A note is written before the mode is widened: if the host is killed, recovery reads the original mode from the note.
Only ordinary users need notes; root can open every directory. A note does not belong to a commit: it is also written
when haft only reads.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from typing import Final

TEMPORARY_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Error numbers that mean a failing or full disk, or a lack of resources: a later attempt may succeed."""
NOTE_SUFFIX: Final = ".opened"
"""The suffix of the files with notes, which lie in the directory of a host's transactions."""


class WidenedModes:
    """One file of notes, for the modes that one `Tree` or snapshot widens."""

    def __init__(self, directory: str) -> None:
        """`directory` is the directory of the host's transactions; the file of notes is made there."""
        self._directory = directory
        self._place: str | None = None
        self._is_owed = False
        self.is_required = True
        """Whether a note that cannot be written is an error. It is not while steps are reverted: a full disk must not
        stop that."""

    def note(self, root: str, path: str, mode: int, inode: int) -> None:
        """Write a note: the mode and inode of the file `path` below `root`. Call this before the mode is widened."""
        if self._place is None:
            self._place = os.path.join(self._directory, f"{os.urandom(8).hex()}{NOTE_SUFFIX}")
        words = [os.fsencode(root).decode("latin-1"), os.fsencode(path).decode("latin-1"), mode, inode]
        try:
            _append(self._place, json.dumps(words).encode() + b"\n")
        except OSError:
            if self.is_required:
                raise

    def mark_unrestored(self, error: OSError) -> None:
        """Record that a mode could not be restored. If the disk failed, `clear` leaves the notes for recovery."""
        self._is_owed = self._is_owed or error.errno in TEMPORARY_ERRORS

    def clear(self) -> None:
        """Remove the file of notes, unless a mode could not be restored because of the disk."""
        if self._place is not None and not self._is_owed:
            with contextlib.suppress(OSError):  # If the disk was full, the file may not exist.
                os.unlink(self._place)
        self._place, self._is_owed = None, False


def _append(place: str, line: bytes) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_notes(directory: str) -> Iterator[tuple[str, str, int, int]]:
    """The notes of a dead host, innermost paths first, each as root, path, mode and inode."""
    found = []
    for name in os.listdir(directory):
        if name.endswith(NOTE_SUFFIX):
            with open(os.path.join(directory, name), "rb") as file:
                lines = file.read().split(b"\n")[:-1]  # If the last line is incomplete, its mode was not widened.
            for root, path, mode, inode in map(json.loads, lines):
                found.append((os.fsdecode(root.encode("latin-1")), os.fsdecode(path.encode("latin-1")), mode, inode))
    yield from sorted(found, key=lambda each: each[1].count("/"), reverse=True)
