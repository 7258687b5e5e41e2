"""SQLite as a whole storage."""

from __future__ import annotations

import os

from haft.storage.home import StateHome
from haft.storage.ports.stores import Health, Stores
from haft.storage.sqlite.audit_log import FileLog
from haft.storage.sqlite.connection import SqliteConnection


class SqliteStores(Stores):
    def __init__(self, home: StateHome) -> None:
        self._home = home

    def connect(self) -> SqliteConnection:
        return SqliteConnection(self._home.database)

    def audit_log(self) -> FileLog:
        return FileLog(self._home.audit)

    def exists(self) -> bool:
        return os.path.exists(self._home.database)

    def health(self) -> Health:
        from haft.storage.sqlite.health import health_of

        return health_of(self._home.database)
