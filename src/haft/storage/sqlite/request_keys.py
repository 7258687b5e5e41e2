"""Request keys in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.contracts import HostId, RunId
from haft.storage.ports.request_keys import KeyedRequest, RequestKeys

if TYPE_CHECKING:
    from haft.storage.sqlite.leased_database import LeasedDatabase


class SqliteRequestKeys(RequestKeys):
    def __init__(self, connection: LeasedDatabase) -> None:
        self._connection = connection

    def claim(self, wanted: KeyedRequest, since: float) -> KeyedRequest:
        with self._connection.writing() as database:
            database.execute("DELETE FROM request_keys WHERE at < ?", [since])
            database.execute(
                "INSERT OR IGNORE INTO request_keys (key, request, runs, host, at) VALUES (?, ?, ?, ?, ?)",
                [wanted.key, wanted.request, " ".join(wanted.runs), wanted.host, wanted.at],
            )
            rows = database.rows("SELECT key, request, runs, host, at FROM request_keys WHERE key = ?", [wanted.key])
        key, request, runs, host, at = rows[0]
        return KeyedRequest(key, request, tuple(map(RunId, runs.split())), HostId(host), at)

    def take_over(self, key: str, of: HostId, to: HostId) -> bool:
        with self._connection.writing() as database:
            return bool(database.execute("UPDATE request_keys SET host = ? WHERE key = ? AND host = ?", [to, key, of]))

    def forget(self, key: str) -> None:
        with self._connection.writing() as database:
            database.execute("DELETE FROM request_keys WHERE key = ?", [key])
