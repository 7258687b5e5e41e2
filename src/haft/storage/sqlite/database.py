"""Opens the SQLite database, migrates it, and runs transactions; no other module does.

SQLite runs in WAL mode, with many processes at once. A commit survives the death of the process at once, and survives
power loss after the next `sync`. Only the modules in this package contain SQL.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from haft.contracts import BadConfig, StorageFailed
from haft.storage.sqlite.migrations import MIGRATIONS

BUSY_SECONDS = 10.0
_FORMAT_AT = 60
"""The offset of `user_version`, four bytes, in the header of an SQLite file."""
_connections: Counter[str] = Counter()
"""How many connections this process has to each database. If the process closed a descriptor of the file that it opened
itself, the kernel would drop the locks of all these connections. Another process could then delete the WAL file that
they use."""
_counting = threading.Lock()


class Database:
    """One connection. Only one thread uses it at a time; during a transaction, all other threads wait."""

    def __init__(self, path: str, before_migrating: Callable[[int], None] = lambda _version: None) -> None:
        """If the database has an older format than this haft uses, `before_migrating` is called with the old format. It
        may raise an error to prevent the migration."""
        self.path = path
        self._before_migrating = before_migrating
        self._turn = threading.RLock()
        self._is_closed = False
        with contextlib.ExitStack() as undo:
            self._count(1)
            undo.callback(self._count, -1)
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
        # The mode is a property of the file. Reading it first avoids the lock that setting it needs.
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @staticmethod
    def _use_wal(connection: sqlite3.Connection) -> None:
        """Set WAL mode. While SQLite does that, it does not wait for other processes that open the same new file, so
        this method retries."""
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
            version = self._version()  # Another process may have migrated it meanwhile.
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
        """A context manager that runs its block in one transaction. Meanwhile, nobody else can write."""
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
        """Run a statement that writes; returns the number of changed rows."""
        try:
            with self._turn:
                return self._connection.execute(statement, values).rowcount
        except sqlite3.Error as error:
            raise StorageFailed("the database cannot be written", error) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        try:
            with self._turn:
                return self._connection.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise StorageFailed("the database cannot be read", error) from error

    def sync(self) -> None:
        """Make all commits survive power loss."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self.path + "-wal", os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        with self._turn:  # A thread may still work for a cancelled call: closing now would free memory that it uses.
            self._connection.close()
            if not self._is_closed:
                self._is_closed = True
                self._count(-1)

    def _count(self, number: int) -> None:
        with _counting:
            _connections[self.path] += number


def format_in(path: str) -> int | None:
    """The format of a database, from the header of its file. None if there is no database. SQLite writes a new format
    to the WAL file first; until it has copied the format to the header, the result is an older format, or 0."""
    with _counting:
        if _connections[path] <= 0:
            try:
                with open(path, "rb", buffering=0) as file:
                    return int.from_bytes(os.pread(file.fileno(), 4, _FORMAT_AT))
            except OSError:
                return None  # Opening the database will report the error.
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.Error:
        return None
