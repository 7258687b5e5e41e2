"""Writes runs: appends them to the journal, and copies them in groups to the audit log and the database, in a thread.

The thread does everything that is slow on disks: transactions, waiting for other writers, syncing. It also reads the
cancel requests of other processes. The event loop only appends to the journal. The thread sleeps while nothing is
written and nothing runs.
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
"""How long entries are collected; also how soon other processes see a run in the table."""
SYNC_SECONDS = 0.2
"""How many seconds of the audit log a power loss may destroy."""
RETRY_SECONDS = 1.0

LogRecords = Callable[[Sequence[bytes]], None]
"""Writes the records of ended runs to the audit log, before the table gets the runs."""


class RunWriter:
    """Writes the runs of one host. It owns a connection to the storage. Call its public methods from the event loop."""

    def __init__(
        self,
        journal: Journal,
        connection: Connection,
        log_records: LogRecords,
        sync_others: Callable[[], None],
        lease: Lease,
    ) -> None:
        """`connection` must be opened under `lease`: when the lease is lost, writes of the connection are refused."""
        self._lease = lease
        self._journal = journal
        self._connection = connection
        self._log_records = log_records
        self._sync_others = sync_others
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._entries: list[Entry] = []
        self._unlogged: list[bytes] = []
        self._live: set[RunId] = set()
        self._cancel: Callable[[RunId, str], None] = lambda _run, _who: None
        self._listeners: list[Callable[[Entry], None]] = []
        self._thread: threading.Thread | None = None
        self.trouble: StorageFailed | None = None
        """Why the last attempt to copy the journal failed, in which case the journals still have the runs; None if it
        succeeded."""

    def on_cancel(self, cancel: Callable[[RunId, str], None]) -> None:
        """Set the function that is called, in the writer's thread, if another process wants to cancel a run."""
        self._cancel = cancel

    def listen(self, listener: Callable[[Entry], None]) -> Callable[[], None]:
        """Tell `listener` every entry from now on, in the thread that writes it and after it is in the journal. Returns
        the function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def write(self, entry: Entry) -> None:
        """Write a run to the journal. When this returns, the run survives the death of this process. Raises `LeaseLost`
        if this host lost its lease (its right to write its runs): another process may then have read the journal
        without this run."""
        with self._lock:
            self._lease.check()
            self._journal.append(entry.line)
            self._lease.check()  # Again: if the lease was lost meanwhile, its new holder may have missed the line.
            self._entries.append(entry)
            if entry.is_open:
                self._live.add(entry.run)
            elif self._live:
                self._live.discard(entry.run)
        for listener in self._listeners:
            listener(entry)
        if not self._wanted.is_set():
            self._wanted.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="haft-run-writer", daemon=True)
                self._thread.start()

    def leave_open(self, run: RunId) -> None:
        """Note that a run outlives this host: it stays open, and another host goes on with it."""
        with self._lock:
            self._live.discard(run)

    def sync(self) -> None:
        """Wait until everything that was written survives a power loss. Slow: call it from a thread."""
        with self._lock:
            self._journal.sync()
        self._sync_others()

    def log_later(self, record: bytes) -> None:
        """Write a record to the audit log later, because writing it at once failed; the journal already has the run."""
        with self._lock:
            self._unlogged.append(record)
        self._wanted.set()

    def close(self) -> None:
        """Copy the lines of the journal that are not copied yet, and end the thread."""
        self._closing.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
        if self._live:
            # The ends of these runs could not be written. The process that finds our journal will end these runs.
            self._journal.leave()

    def _work(self) -> None:
        group = _Group(self._connection, self._log_records, self._sync_others)
        while True:
            busy = self._entries or group.is_unfinished or self._live
            self._wanted.wait(GROUP_SECONDS * 2 if busy else None)
            if self._entries:
                self._closing.wait(GROUP_SECONDS)
            closing = self._closing.is_set()
            self._wanted.clear()
            try:
                self._lease.check()  # Even if there is nothing to write: without the lease, running calls must end.
                self._hand_over(group)
                group.copy(at_once=closing)
                if self._live:
                    self._handle_cancels()
                self.trouble = None
            except LeaseLost as error:
                self.trouble = error
                self._give_up(group)
            except (HaftError, OSError) as error:
                # This thread must not end because of the error: nothing else copies the journal, and nobody would
                # notice.
                self.trouble = (
                    error
                    if isinstance(error, StorageFailed)
                    else StorageFailed("the state home cannot be written", error)
                )
                self._closing.wait(RETRY_SECONDS)
            if closing and (not self._entries or self.trouble is not None):
                break  # Runs that could not be copied stay in the journal for the next host.
        group.close()

    def _give_up(self, group: _Group) -> None:
        """Cancel all running calls, because another process has taken over this host's lease, and has ended the runs of
        these calls."""
        with self._lock:
            self._entries, self._unlogged, live = [], [], list(self._live)
            self._live.clear()
            group.forget()
        for run in live:
            self._cancel(run, "haft")

    def _hand_over(self, group: _Group) -> None:
        with self._lock:
            # Rotate first, since it may fail: then the entries stay.
            path = self._journal.rotate() if self._entries else None
            group.take(self._entries, self._unlogged, path)
            self._entries, self._unlogged = [], []

    def _handle_cancels(self) -> None:
        for run, who in self._connection.runs.take_cancels(self._live):
            self._cancel(run, who)


class _Group:
    """Entries that are being copied from journals to the audit log and the database. A failed step is repeated."""

    def __init__(self, connection: Connection, log_records: LogRecords, sync_others: Callable[[], None]) -> None:
        self._connection = connection
        self._log_records = log_records
        self._sync_others = sync_others
        self._unlogged: list[bytes] = []
        self._unstored: list[Entry] = []
        self._journals: list[str] = []
        self._synced = time.monotonic()
        self._unsynced = False

    @property
    def is_unfinished(self) -> bool:
        return bool(self._unlogged or self._unstored or self._journals) or self._unsynced

    def take(self, entries: Sequence[Entry], unlogged: Sequence[bytes], journal: str | None) -> None:
        self._unlogged += unlogged
        self._unlogged += [entry.record for entry in entries if not entry.is_open and not entry.recorded]
        self._unstored += entries
        if journal is not None:
            self._journals.append(journal)

    def forget(self) -> None:
        self._unlogged, self._unstored, self._journals, self._unsynced = [], [], [], False

    def copy(self, *, at_once: bool) -> None:
        if self._unlogged:
            self._log_records(self._unlogged)
            self._unlogged = []
        if self._unstored:
            self._connection.runs.put([entry.line for entry in _without_replaced(self._unstored)])
            self._unstored = []
            self._unsynced = True
        if self._unsynced and (at_once or time.monotonic() - self._synced >= SYNC_SECONDS):
            self._sync_others()
            self._connection.runs.sync()
            self._synced, self._unsynced = time.monotonic(), False
            # Delete journals only after the sync: a caller may rely on a synced journal.
            while self._journals:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._journals[-1])
                self._journals.pop()

    def close(self) -> None:
        self._connection.close()


def _without_replaced(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without those that a later entry of the same run replaces."""
    latest = {entry.run: entry for entry in entries}
    return [entry for entry in entries if entry.has_events or entry is latest[entry.run]]
