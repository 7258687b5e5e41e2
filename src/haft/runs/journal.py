"""A host's journal: stores an acknowledged run safely before the audit log and the database have it.

Each run is one line and one write, about thirty times cheaper than a transaction; so all other writing is done later,
in groups. A journal belongs to one host and is deleted when its lines have been copied to the log and the database.
After a `kill -9`, the process that gets the dead host's lock copies them.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterator

from haft.contracts import HostId, StorageFailed
from haft.runs.entry import Entry, entry_from_line
from haft.storage import AppendOnlyFile


def journal_paths(hosts: str, host: HostId | None = None) -> list[str]:
    """The paths of the journals of one host, or of all hosts if `host` is None. The journals of one host are sorted,
    the oldest first."""
    return sorted(glob.glob(os.path.join(glob.escape(hosts), f"{host or '*'}.*.journal")))


def log_position(path: str) -> int:
    """The size that the audit log had when a journal was started, read from the journal's name. The records that end
    the journal's runs lie after this position in the log. 0 for journals of earlier versions, whose names do not
    contain the size."""
    words = os.path.basename(path).split(".")
    with contextlib.suppress(ValueError):
        if len(words) == 4:
            return int(words[2], 16)
    return 0


def read_journal(path: str) -> Iterator[Entry]:
    """The entries of a journal. An incomplete last line was never acknowledged, and is skipped."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file:
            entry = entry_from_line(line)
            if entry is not None:
                yield entry


def is_damaged(path: str) -> bool:
    """Whether a journal has unreadable lines, apart from an incomplete last line after a crash."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return any(line.endswith(b"\n") and entry_from_line(line) is None for line in file)
    return False


class Journal:
    """The journal of this host, open for appending. `rotate` closes the file and returns its path; the next line starts
    a new file."""

    def __init__(
        self, hosts: str, host: HostId, log_size: Callable[[], int] = lambda: 0, *, synced: bool = False
    ) -> None:
        """`log_size` returns the current size of the audit log, or an earlier size."""
        self._log_size = log_size
        self._hosts = hosts
        self._host = host
        self._synced = synced
        """Whether `rotate` syncs the file, for callers that wait until a run survives power loss."""
        self._number = 0
        self._file: AppendOnlyFile | None = None

    def append(self, line: bytes) -> None:
        self._opened().append(line)

    def _opened(self) -> AppendOnlyFile:
        if self._file is None:
            self._number += 1
            name = f"{self._host}.{self._number:08d}.{self._log_size():x}.journal"
            self._file = AppendOnlyFile(os.path.join(self._hosts, name))
        return self._file

    def leave(self) -> None:
        """Leave a file behind, even an empty one: it shows that recovery has work to do for this host."""
        with contextlib.suppress(StorageFailed):
            self._opened().close()
            self._file = None

    def rotate(self) -> str | None:
        """Close the current file and return its path, to be deleted when its lines have been copied; None if no file is
        open."""
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
