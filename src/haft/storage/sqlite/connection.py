"""One line to the SQLite database of a state home, and the stores that use it."""

from __future__ import annotations

import functools
import threading

from haft.storage.ports.stores import Connection
from haft.storage.sqlite.approvals import SqliteApprovals
from haft.storage.sqlite.change_sets import SqliteLedger
from haft.storage.sqlite.database import Database
from haft.storage.sqlite.remembered import SqlitePins, SqliteRules
from haft.storage.sqlite.runs import SqliteRuns


class SqliteConnection(Connection):
    def __init__(self, path: str) -> None:
        self._path = path
        self._opened: Database | None = None
        self._opening = threading.Lock()

    @property
    def database(self) -> Database:
        with self._opening:
            if self._opened is None:
                self._opened = Database(self._path)
            return self._opened

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
