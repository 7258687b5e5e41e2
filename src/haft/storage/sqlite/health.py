"""Checks whether SQLite can do what haft needs, and whether the database is intact."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from haft.contracts import StorageFailed
from haft.storage.home import StateHome
from haft.storage.ports.stores import Health
from haft.storage.sqlite.database import Database
from haft.storage.sqlite.upgrade_check import require_no_other_host

MAX_CHECKED: Final = 64_000_000
"""The size in bytes up to which a database is checked as a whole."""
NEWEST: Final = 1_000


def health_of(home: StateHome) -> Health:
    """The health of the database. If there is no database, a temporary one shows whether SQLite works on this
    machine."""
    path = home.database
    with tempfile.TemporaryDirectory() as directory:
        place = path if os.path.exists(path) else os.path.join(directory, "haft.db")
        database = Database(place, lambda version: require_no_other_host(home, version))
        try:
            version = database.rows("SELECT sqlite_version()")[0][0]
            mode = database.rows("PRAGMA journal_mode")[0][0]
            sound, looked = _look_into(database)
        finally:
            database.close()
    if sound != "ok":
        return Health(f"{path} is damaged: {sound}", is_sound=False, hint=f"move {path} away; the audit log stays")
    if mode != "wal":
        hint = "put HAFT_HOME on a local disk: WAL needs shared memory"
        return Health(f"SQLite {version} uses {mode} here, and cannot use WAL", is_sound=False, hint=hint)
    return Health(f"SQLite {version}, WAL{looked}")


def _look_into(database: Database) -> tuple[str, str]:
    """Two texts: the problem, or `ok` if there is none; and which part of the database was checked, empty if all of it.
    A full check reads every page, so in a large database only the newest rows of each table are checked."""
    size = os.path.getsize(database.path)
    if size <= MAX_CHECKED:
        return str(database.rows("PRAGMA quick_check(1)")[0][0]), ""
    try:
        for (table,) in database.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ):
            key = ", ".join(f"{each[1]} DESC" for each in database.rows(f"PRAGMA table_info({table})") if each[5])
            database.rows(f"SELECT * FROM {table} ORDER BY {key or 'rowid DESC'} LIMIT {NEWEST}")  # noqa: S608  ours
    except StorageFailed as error:
        return str(error), ""
    return "ok", f", {size / 1e9:.1f} GB: of each table the newest {NEWEST} rows were read"
