"""One line to the SQLite database of a state home, and the stores that use it."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator

from haft.contracts import HostId, LeaseLost
from haft.storage.home import StateHome
from haft.storage.ports.leases import Lease
from haft.storage.ports.stores import Connection
from haft.storage.sqlite.approvals import SqliteApprovals
from haft.storage.sqlite.change_sets import SqliteLedger
from haft.storage.sqlite.database import Database
from haft.storage.sqlite.remembered import SqlitePins, SqliteRules
from haft.storage.sqlite.runs import SqliteRuns
from haft.storage.sqlite.upgrading import require_no_other_host


class SqliteConnection(Connection):
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
        """A transaction, refused where someone took over the lease under which it is made."""
        database, lease = self.database, self._lease
        with database.transaction():
            if lease is not None:
                query = "SELECT 1 FROM fences WHERE host = ? AND number > ?"
                if database.rows(query, [lease.host, lease.number]):
                    raise LeaseLost(lease.host)
            yield database

    def raise_number(self, host: HostId) -> int:
        """The next fencing number of a host. One that nobody took over from is not written down: it has the first."""
        with self.writing() as database:
            database.execute(
                "INSERT INTO fences VALUES (?, 2) ON CONFLICT (host) DO UPDATE SET number = number + 1", [host]
            )
            return int(database.rows("SELECT number FROM fences WHERE host = ?", [host])[0][0])

    @functools.cached_property
    def runs(self) -> SqliteRuns:
        return SqliteRuns(self)

    @functools.cached_property
    def ledger(self) -> SqliteLedger:
        return SqliteLedger(self)

    @functools.cached_property
    def approvals(self) -> SqliteApprovals:
        return SqliteApprovals(self)

    @functools.cached_property
    def rules(self) -> SqliteRules:
        return SqliteRules(self)

    @functools.cached_property
    def pins(self) -> SqlitePins:
        return SqlitePins(self)

    def version(self) -> object:
        return self.database.rows("PRAGMA data_version")[0][0]

    def close(self) -> None:
        with self._opening:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
