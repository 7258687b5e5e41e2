"""A host's journal: where an acknowledged run is safe before the audit log and the database have it.

One line and one write a run: about thirty times cheaper than a transaction, which is why everything else is done in
groups behind it. A journal belongs to one host and is deleted when its lines have been carried over. After a `kill -9`
the one who could take the dead host's lock carries them over.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterator

from haft.contracts import HostId, StorageFailed
from haft.runs.entry import Entry, entry_from_line
from haft.storage import AppendedFile


def journal_paths(hosts: str, host: HostId | None = None) -> list[str]:
    """The journals of one host, or of all, oldest first within a host."""
    return sorted(glob.glob(os.path.join(glob.escape(hosts), f"{host or '*'}.*.journal")))


def log_position(path: str) -> int:
    """Where the audit log ended when a journal was begun: no run in it has its end recorded before that. Its name says
    so; journals of earlier versions say nothing."""
    words = os.path.basename(path).split(".")
    with contextlib.suppress(ValueError):
        if len(words) == 4:
            return int(words[2], 16)
    return 0


def journalled(path: str) -> Iterator[Entry]:
    """The entries of a journal. A torn last line was never acknowledged."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file:
            entry = entry_from_line(line)
            if entry is not None:
                yield entry


def is_damaged(path: str) -> bool:
    """Whether a journal holds lines that cannot be read, beside a last one torn by a crash."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return any(line.endswith(b"\n") and entry_from_line(line) is None for line in file)
    return False


class Journal:
    """The journal of this host, open for appending. `rotate` starts a new file and hands over the old one."""

    def __init__(
        self, hosts: str, host: HostId, log_size: Callable[[], int] = lambda: 0, *, synced: bool = False
    ) -> None:
        """`log_size` says where the audit log ends now, or ended before."""
        self._log_size = log_size
        self._hosts = hosts
        self._host = host
        self._synced = synced
        """Whether a file is synced before it is handed over: for callers who wait for that."""
        self._number = 0
        self._file: AppendedFile | None = None

    def append(self, line: bytes) -> None:
        self._opened().append(line)

    def _opened(self) -> AppendedFile:
        if self._file is None:
            self._number += 1
            name = f"{self._host}.{self._number:08d}.{self._log_size():x}.journal"
            self._file = AppendedFile(os.path.join(self._hosts, name))
        return self._file

    def leave(self) -> None:
        """Leave a file behind, if an empty one: the sign that this host has something to clean up after."""
        with contextlib.suppress(StorageFailed):
            self._opened().close()
            self._file = None

    def rotate(self) -> str | None:
        """The path of the file so far, to be deleted when its lines are elsewhere; None where there is none."""
        if self._file is None:
            return None
        path = self._file.path
        if self._synced:
            self._file.sync()
        self._file.close()
        self._file = None
        return path

    def sync(self) -> None:
        if self._file is not None:
            self._file.sync()
