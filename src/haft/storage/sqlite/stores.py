"""The whole storage in SQLite."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager

from haft.contracts import HostId
from haft.storage.home import StateHome
from haft.storage.ports.leases import Lease
from haft.storage.ports.stores import Health, Stores
from haft.storage.sqlite.audit_log import FileLog
from haft.storage.sqlite.connection import SqliteConnection
from haft.storage.sqlite.database import format_in
from haft.storage.sqlite.leases import LockLeases
from haft.storage.sqlite.migrations import MIGRATIONS


class SqliteStores(Stores):
    def __init__(self, home: StateHome) -> None:
        self._home = home

    def connect(self, lease: Lease | None = None) -> SqliteConnection:
        return SqliteConnection(self._home, lease)

    def leases(self) -> LockLeases:
        return LockLeases(self._home.hosts, self._raise_number, self._require_format)

    def _require_format(self) -> None:
        """Raise an error if this haft cannot use the format of the database. Called before a host begins, so that the
        error does not come only at its first write. Reading the format from the file is cheaper than opening the
        database."""
        if format_in(self._home.database) not in (None, len(MIGRATIONS)):
            with contextlib.closing(self.connect()) as connection:
                _ = connection.database

    def _raise_number(self, host: HostId) -> int:
        with contextlib.closing(self.connect()) as connection:
            return connection.raise_number(host)

    def audit_log(self, lease: Lease | None = None) -> FileLog:
        return FileLog(self._home.audit) if lease is None else FileLog(self._home.audit, lease.check)

    def exists(self) -> bool:
        return os.path.exists(self._home.database)

    def health(self) -> Health:
        from haft.storage.sqlite.health import health_of

        return health_of(self._home)

    def copy_to(self, path: str, fixing: AbstractContextManager[None]) -> None:
        from haft.storage.sqlite.backup import copy_database

        copy_database(self._home.database, path, fixing)

    def problem(self) -> str | None:
        from haft.storage.sqlite.backup import problem_of

        return problem_of(self._home.database)

    def move_areas(self, places: Mapping[str, str]) -> None:
        from haft.storage.sqlite.backup import move_areas

        move_areas(self._home.database, places)
