"""Access to the SQLite database of a state home, under a lease, which is a host's claim on its runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from haft.contracts import LeaseLost
from haft.storage.home import StateHome
from haft.storage.ports.leases import Lease
from haft.storage.sqlite.database import Database
from haft.storage.sqlite.upgrade_check import require_no_other_host


class LeasedDatabase:
    """Opens the database on first use, and checks the lease at every write."""

    def __init__(self, home: StateHome, lease: Lease | None = None) -> None:
        self._home = home
        self._lease = lease
        self._opened: Database | None = None
        self._opening = threading.Lock()

    @property
    def database(self) -> Database:
        with self._opening:
            if self._opened is None:
                self._opened = Database(self._home.database, lambda version: require_no_other_host(self._home, version))
            return self._opened

    @contextlib.contextmanager
    def writing(self) -> Iterator[Database]:
        """A context manager that runs its block in one transaction, and yields the database. Raises `LeaseLost` if
        another process has taken over the lease."""
        database, lease = self.database, self._lease
        with database.transaction():
            if lease is not None:
                query = "SELECT 1 FROM fences WHERE host = ? AND number > ?"
                if database.rows(query, [lease.host, lease.number]):
                    raise LeaseLost(lease.host)
            yield database

    def close(self) -> None:
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
