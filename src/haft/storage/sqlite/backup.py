"""Copies the database of a running state home, checks a database, and tells it that areas have moved."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import AbstractContextManager
from urllib.parse import quote

from haft.contracts import StorageFailed

PAGES_AT_ONCE = 5_000


def copy_database(source: str, target: str, fixing: AbstractContextManager[None]) -> None:
    """Write a copy of the database to the new file `target`. What the copy contains is fixed inside `fixing`; hosts
    write on meanwhile."""
    try:
        with (
            contextlib.closing(sqlite3.connect(source, isolation_level=None)) as ours,
            contextlib.closing(_new_database(target)) as copy,
        ):
            # The open transaction keeps this view of the database; in WAL mode nobody waits for it.
            with fixing:
                ours.execute("BEGIN")
                ours.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            ours.backup(copy, pages=PAGES_AT_ONCE)
            ours.execute("COMMIT")
    except sqlite3.Error as error:
        raise StorageFailed(f"the database {source} cannot be copied to {target}", error) from error


def _new_database(path: str) -> sqlite3.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    return sqlite3.connect(path, isolation_level=None)


def problem_of(path: str) -> str | None:
    """What is wrong with a database, after a check of every page and index; None if nothing is."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as database:
            found = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
            return None if found == "ok" else found
    except sqlite3.Error as error:
        return str(error)


def move_areas(path: str, places: Mapping[str, str]) -> None:
    """Write the new path of each area into a database that nobody else uses."""
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            for old, new in places.items():
                database.execute("UPDATE change_sets SET area = ? WHERE area = ?", [new, old])
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise StorageFailed(f"the database {path} cannot be written", error) from error
