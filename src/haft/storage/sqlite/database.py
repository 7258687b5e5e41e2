"""The database: the one place that opens it, shapes it and makes transactions.

SQLite in WAL mode, many processes at once. A commit survives the death of the process at once, and power loss from the
next `sync` on. Only the modules beside this one write SQL.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from haft.contracts import BadConfig, StorageFailed
from haft.storage.sqlite.migrations import MIGRATIONS

BUSY_SECONDS = 10.0
_FORMAT_AT = 60
"""Where the header of an SQLite file has `user_version`, in four bytes."""


class Database:
    """One connection. Threads take turns; a transaction is one turn."""

    def __init__(self, path: str, before_migrating: Callable[[int], None] = lambda _version: None) -> None:
        """`before_migrating` is told the format of a database that is older than this haft, and may refuse."""
        self.path = path
        self._before_migrating = before_migrating
        self._turn = threading.RLock()
        with contextlib.ExitStack() as undo:
            try:
                self._connection = self._connect()
                undo.callback(self._connection.close)
                self._prepare()
                self._migrate()
            except (sqlite3.Error, OSError) as error:
                raise StorageFailed(f"the database {path} cannot be opened", error) from error
            undo.pop_all()

    def _connect(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            # SQLite would make it readable by the group.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        return sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
        )

    def _prepare(self) -> None:
        connection = self._connection
        # The mode is a property of the file: asking first spares the lock that setting it takes.
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @staticmethod
    def _use_wal(connection: sqlite3.Connection) -> None:
        """For this one step SQLite does not wait for others who open the same fresh file, so we do."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.005)

    def _migrate(self) -> None:
        if self._version() == len(MIGRATIONS):
            return
        with self.transaction():
            version = self._version()  # Another process may have been faster.
            if version > len(MIGRATIONS):
                raise BadConfig(
                    f"{self.path} was written by a newer haft (format {version}, this one knows {len(MIGRATIONS)})",
                    hint="update haft, or set HAFT_HOME to another directory",
                )
            if version:
                self._before_migrating(version)
            for step in MIGRATIONS[version:]:
                for statement in step.split(";"):
                    if statement.strip():
                        self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and alone among writers."""
        with self._turn:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise StorageFailed("the database cannot be written", error) from error

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Change something; the number of rows it changed."""
        try:
            with self._turn:
                return self._connection.execute(statement, values).rowcount
        except sqlite3.Error as error:
            raise StorageFailed("the database cannot be written", error) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Everything a query answers."""
        try:
            with self._turn:
                return self._connection.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise StorageFailed("the database cannot be read", error) from error

    def sync(self) -> None:
        """What was committed survives power loss from here on."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        with self._turn:  # A thread may be at work for a call that was cancelled: SQLite would pull its memory away.
            self._connection.close()


def format_in(path: str) -> int | None:
    """The format of a database, by the header of its file: an older one, or 0, while the newer one is still in the WAL.
    None where there is no database."""
    try:
        with open(path, "rb", buffering=0) as file:
            return int.from_bytes(os.pread(file.fileno(), 4, _FORMAT_AT))
    except OSError:
        return None  # Whoever opens it says what is wrong.
