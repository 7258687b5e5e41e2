"""Modes that are widened for a moment, noted before: whoever is killed in that moment leaves a note of what they were.

Only ordinary users need it; to root every directory is open. A note is no journal of a commit: it is written also where
something is only looked at.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from typing import Final

TEMPORARY_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What a machine says that has no room or no rest at the moment."""
NOTE_SUFFIX: Final = ".opened"
"""How the names of notes end, where transactions are under way."""


class WidenedModes:
    """The notes of one look into a tree."""

    def __init__(self, directory: str) -> None:
        """`directory` is the place of the host's transactions."""
        self._directory = directory
        self._place: str | None = None
        self._is_owed = False
        self.is_required = True
        """Whether what cannot be noted is not to be done. Taking back goes on without: a full disk must not keep it."""

    def note(self, root: str, path: str, mode: int, inode: int) -> None:
        """To be called before the mode is widened."""
        if self._place is None:
            self._place = os.path.join(self._directory, f"{os.urandom(8).hex()}{NOTE_SUFFIX}")
        words = [os.fsencode(root).decode("latin-1"), os.fsencode(path).decode("latin-1"), mode, inode]
        try:
            _append(self._place, json.dumps(words).encode() + b"\n")
        except OSError:
            if self.is_required:
                raise

    def mark_unrestored(self, error: OSError) -> None:
        """A mode could not be given back. Where the disk is to blame, the note stays for whoever comes after."""
        self._is_owed = self._is_owed or error.errno in TEMPORARY_ERRORS

    def clear(self) -> None:
        """Everything is as it was, but for what was `missed`."""
        if self._place is not None and not self._is_owed:
            with contextlib.suppress(OSError):  # There may have been no room for it.
                os.unlink(self._place)
        self._place, self._is_owed = None, False


def _append(place: str, line: bytes) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_notes(directory: str) -> Iterator[tuple[str, str, int, int]]:
    """What the notes of a dead host tell, the innermost first: the root, the path beneath, the mode and the inode."""
    found = []
    for name in os.listdir(directory):
        if name.endswith(NOTE_SUFFIX):
            with open(os.path.join(directory, name), "rb") as file:
                lines = file.read().split(b"\n")[:-1]  # The last may have been cut short: it came to nothing.
            for root, path, mode, inode in map(json.loads, lines):
                found.append((os.fsdecode(root.encode("latin-1")), os.fsdecode(path.encode("latin-1")), mode, inode))
    yield from sorted(found, key=lambda each: each[1].count("/"), reverse=True)
