"""The thread that carries a host's journal over, in groups, and reads what other processes ask of the host.

Everything slow about disks happens here: transactions, waiting for other writers, syncing. The event loop only appends
to the journal. The thread sleeps while nothing is written and nothing runs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence

from haft.contracts import HaftError, LeaseLost, RunId, StorageFailed
from haft.runs.entry import Entry
from haft.runs.journal import Journal
from haft.storage import Connection, Lease

GROUP_SECONDS = 0.05
"""How long entries are gathered: also how soon other processes see a run in the table."""
SYNC_SECONDS = 0.2
"""How much of the audit log power loss may take."""
RETRY_SECONDS = 1.0

Tell = Callable[[Sequence[bytes]], None]
"""Who must know of ended runs before the table does: the audit log, handed its own half of the entries."""


class Scribe:
    """Owns a connection to the storage. Public methods are called from the event loop."""

    def __init__(
        self, journal: Journal, connection: Connection, tell: Tell, sync_others: Callable[[], None], lease: Lease
    ) -> None:
        """`connection` is one under `lease`."""
        self._lease = lease
        self._journal = journal
        self._connection = connection
        self._tell = tell
        self._sync_others = sync_others
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._entries: list[Entry] = []
        self._untold: list[bytes] = []
        self._live: set[RunId] = set()
        self._cancel: Callable[[RunId, str], None] = lambda _run, _who: None
        self._thread: threading.Thread | None = None
        self.trouble: StorageFailed | None = None
        """Why nothing could be carried over last time; the journals keep what is missing elsewhere."""

    def on_cancel(self, cancel: Callable[[RunId, str], None]) -> None:
        """Who to tell, in the scribe's thread, that another process wants a run cancelled."""
        self._cancel = cancel

    def write(self, entry: Entry) -> None:
        """Put down a run. Safe against the death of this process when it returns. `LeaseLost` where another process may
        have read the journal before."""
        with self._lock:
            self._lease.check()
            self._journal.append(entry.line)
            self._lease.check()  # Once more: had it ended meanwhile, who took over may not have read the line.
            self._entries.append(entry)
            if entry.is_open:
                self._live.add(entry.run)
            elif self._live:
                self._live.discard(entry.run)
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="haft-scribe", daemon=True)
                self._thread.start()

    def sync(self) -> None:
        """Wait until everything written survives power loss. Slow: call it from a thread."""
        with self._lock:
            self._journal.sync()
        self._sync_others()

    def tell_later(self, record: bytes) -> None:
        """The audit log could not be told at once of a run that is put down: it must still learn of it."""
        with self._lock:
            self._untold.append(record)
        self._wanted.set()

    def close(self) -> None:
        """Carry over what is left and end the thread."""
        self._closing.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
        if self._live:
            # Their ends could not be written. Whoever finds a journal of ours ends them.
            self._journal.leave()

    def _work(self) -> None:
        group = _Group(self._connection, self._tell, self._sync_others)
        while True:
            busy = self._entries or group.is_unfinished or self._live
            self._wanted.wait(GROUP_SECONDS * 2 if busy else None)
            if self._entries:
                self._closing.wait(GROUP_SECONDS)
            closing = self._closing.is_set()
            self._wanted.clear()
            try:
                self._lease.check()  # Also where nothing is to be written: what still runs must be ended.
                self._hand_over(group)
                group.carry_over(at_once=closing)
                if self._live:
                    self._look_for_cancels()
                self.trouble = None
            except LeaseLost as error:
                self.trouble = error
                self._give_up(group)
            except (HaftError, OSError) as error:
                # This thread must not die of it: nothing else carries over, and nobody would notice.
                self.trouble = (
                    error
                    if isinstance(error, StorageFailed)
                    else StorageFailed("the state home cannot be written", error)
                )
                self._closing.wait(RETRY_SECONDS)
            if closing and (not self._entries or self.trouble is not None):
                break  # What could not be carried over stays in its journal for the next host.
        group.close()

    def _give_up(self, group: _Group) -> None:
        """Another process has taken over: the runs are its own now, and it has ended them."""
        with self._lock:
            self._entries, self._untold, live = [], [], list(self._live)
            self._live.clear()
            group.forget()
        for run in live:
            self._cancel(run, "haft")

    def _hand_over(self, group: _Group) -> None:
        with self._lock:
            # First, as it may fail: then the entries stay where they are.
            path = self._journal.rotate() if self._entries else None
            group.take(self._entries, self._untold, path)
            self._entries, self._untold = [], []

    def _look_for_cancels(self) -> None:
        for run, who in self._connection.runs.take_cancels(self._live):
            self._cancel(run, who)


class _Group:
    """Entries on their way from journals to the audit log and the table. A step that failed is done again."""

    def __init__(self, connection: Connection, tell: Tell, sync_others: Callable[[], None]) -> None:
        self._connection = connection
        self._tell = tell
        self._sync_others = sync_others
        self._untold: list[bytes] = []
        self._unput: list[Entry] = []
        self._journals: list[str] = []
        self._synced = time.monotonic()
        self._unsynced = False

    @property
    def is_unfinished(self) -> bool:
        return bool(self._untold or self._unput or self._journals) or self._unsynced

    def take(self, entries: Sequence[Entry], untold: Sequence[bytes], journal: str | None) -> None:
        self._untold += untold
        self._untold += [entry.record for entry in entries if not entry.is_open and not entry.recorded]
        self._unput += entries
        if journal is not None:
            self._journals.append(journal)

    def forget(self) -> None:
        self._untold, self._unput, self._journals, self._unsynced = [], [], [], False

    def carry_over(self, *, at_once: bool) -> None:
        if self._untold:
            self._tell(self._untold)
            self._untold = []
        if self._unput:
            self._connection.runs.put([entry.line for entry in self._unput])
            self._unput = []
            self._unsynced = True
        if self._unsynced and (at_once or time.monotonic() - self._synced >= SYNC_SECONDS):
            self._sync_others()
            self._connection.runs.sync()
            self._synced, self._unsynced = time.monotonic(), False
            # Only now: a journal may have been synced for a caller who asked for that.
            while self._journals:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._journals[-1])
                self._journals.pop()

    def close(self) -> None:
        self._connection.close()
