"""Whether SQLite can do what haft needs, and whether the database is sound."""

from __future__ import annotations

import os
import tempfile

from haft.storage.home import StateHome
from haft.storage.ports.stores import Health
from haft.storage.sqlite.database import Database
from haft.storage.sqlite.upgrading import require_no_other_host


def health_of(home: StateHome) -> Health:
    """Of the database where there is one, else of a temporary one: then it says whether SQLite would do."""
    path = home.database
    with tempfile.TemporaryDirectory() as directory:
        place = path if os.path.exists(path) else os.path.join(directory, "haft.db")
        database = Database(place, lambda version: require_no_other_host(home, version))
        try:
            version = database.rows("SELECT sqlite_version()")[0][0]
            mode = database.rows("PRAGMA journal_mode")[0][0]
            sound = database.rows("PRAGMA quick_check(1)")[0][0]
        finally:
            database.close()
    if sound != "ok":
        return Health(f"{path} is damaged: {sound}", is_sound=False, hint="move it away; the record stays")
    if mode != "wal":
        hint = "put HAFT_HOME on a local disk: WAL needs shared memory"
        return Health(f"SQLite {version} cannot use WAL here but {mode}", is_sound=False, hint=hint)
    return Health(f"SQLite {version}, WAL")
