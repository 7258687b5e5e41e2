"""Whether SQLite can do what haft needs, and whether the database is sound."""

from __future__ import annotations

import os
import tempfile

from haft.storage.ports.stores import Health
from haft.storage.sqlite.database import Database


def health_of(path: str) -> Health:
    """Of the database where there is one, else of a temporary one: then it says whether SQLite would do."""
    with tempfile.TemporaryDirectory() as directory:
        database = Database(path if os.path.exists(path) else os.path.join(directory, "haft.db"))
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
