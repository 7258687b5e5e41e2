"""A connection to the SQLite database of a state home, and the stores that use it."""

from __future__ import annotations

import functools

from haft.contracts import HostId
from haft.storage.ports.stores import Connection
from haft.storage.sqlite.approvals import SqliteApprovals
from haft.storage.sqlite.change_sets import SqliteLedger
from haft.storage.sqlite.leased_database import LeasedDatabase
from haft.storage.sqlite.request_keys import SqliteRequestKeys
from haft.storage.sqlite.rules_and_pins import SqlitePins, SqliteRules
from haft.storage.sqlite.runs import SqliteRuns


class SqliteConnection(LeasedDatabase, Connection):
    def raise_number(self, host: HostId) -> int:
        """Raise and return the fencing number of a host (`ports/leases.py` explains it). A host whose lease was never
        taken over has the number 1, and no row in the table."""
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

    @functools.cached_property
    def request_keys(self) -> SqliteRequestKeys:
        return SqliteRequestKeys(self)

    def version(self) -> object:
        return self.database.rows("PRAGMA data_version")[0][0]
