"""Runs in SQLite.

The database itself parses the JSON documents, in one statement for many documents. That statement does not hold the
interpreter's lock, so it does not block the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import Event, HostId, RunId
from haft.storage.encoding import decode
from haft.storage.ports.runs import Filter, RunStore, small_letters

if TYPE_CHECKING:
    from haft.storage.sqlite.leased_database import LeasedDatabase

MAX_RUNS: Final = 1 << 40
"""The largest limit of a query, more runs than there will ever be: a person may type a limit beyond the database's
integers."""

_RUNS = """
    INSERT INTO runs (id, host, tool, status, who, thread, parent, workspace, started_at, ended_at, batch, call_key,
                      document)
    SELECT value ->> '$.record.run', value ->> '$.rest.host', coalesce(value ->> '$.record.tool', ''),
           value ->> '$.record.status', coalesce(value ->> '$.record.who', ''),
           coalesce(value ->> '$.record.thread', ''), value ->> '$.record.parent',
           coalesce(value ->> '$.record.workspace', ''), value ->> '$.rest.startedAt', value ->> '$.rest.endedAt',
           value ->> '$.record.batch', value ->> '$.rest.key', value
    FROM json_each(?) WHERE true
    ON CONFLICT (id) DO UPDATE
    SET status = excluded.status, ended_at = excluded.ended_at, document = excluded.document
    WHERE runs.ended_at IS NULL  -- A run that has ended never reopens, whatever is replayed in whatever order.
"""
_EVENTS = """
    WITH one AS MATERIALIZED (
        SELECT value ->> '$.record.run' AS run, value -> '$.rest.noted' AS noted FROM json_each(?)
    )
    INSERT OR REPLACE INTO events (run, seq, at, type, status, facts)
    SELECT one.run, noted.value ->> 0, noted.value ->> 1, noted.value ->> 2, noted.value ->> 3, noted.value -> 4
    FROM one, json_each(one.noted) AS noted
"""
_PATHS = """
    WITH one AS MATERIALIZED (  -- Or the whole entry would be parsed again for every path of it.
        SELECT value ->> '$.record.run' AS run, value -> '$.record.changes.files' AS files FROM json_each(?)
    )
    INSERT OR IGNORE INTO run_paths (path, run)
    SELECT changed.value ->> 'path', one.run FROM one, json_each(one.files) AS changed
"""
_HOSTS = """
    WITH one AS MATERIALIZED (
        SELECT value ->> '$.record.run' AS run, value -> '$.record.sandbox.connections' AS connections
        FROM json_each(?)
    )
    INSERT OR IGNORE INTO run_hosts (host, run)
    SELECT made.value ->> 'host', one.run FROM one, json_each(one.connections) AS made
"""

_RARER: Final = {"tool", "who", "thread", "parent", "batch"}
"""Of these, one value has fewer runs than one workspace, as a rule."""
_HAS_TEXT: Final = (
    "(instr(lower(document -> '$.record.arguments'), ?) OR instr(lower(coalesce(document ->> '$.rest.output', '')), ?))"
)


class SqliteRuns(RunStore):
    def __init__(self, connection: LeasedDatabase) -> None:
        self._connection = connection

    def put(self, documents: Sequence[bytes]) -> None:
        with self._connection.writing() as database:
            database.execute(_RUNS, [_array(documents)])
            # Most documents have no events, no paths and no connections, which the bytes show: unescaped quotes cannot
            # occur inside a JSON string.
            for statement, empty in (
                (_EVENTS, b'"noted":[]'),
                (_PATHS, b'"files":[]'),
                (_HOSTS, b'"connections":[]'),
            ):
                some = [document for document in documents if empty not in document]
                if some:
                    database.execute(statement, [_array(some)])

    def sync(self) -> None:
        self._connection.database.sync()

    def select(self, wanted: Filter) -> list[str]:
        exact = dict(wanted.exact())
        if "workspace" in exact and exact.keys() & _RARER:
            exact["+workspace"] = exact.pop("workspace")  # The plus keeps the database from using this index.
        conditions = [f"{name} = ?" for name in exact]
        values: list[Any] = [*exact.values()]
        if wanted.key is not None:
            conditions.append("call_key = ?")
            values.append(wanted.key)
        if wanted.since is not None:
            conditions.append("started_at >= ?")
            values.append(wanted.since)
        if wanted.until is not None:
            conditions.append("started_at < ?")
            values.append(wanted.until)
        if wanted.longer_than is not None:
            conditions.append("coalesce(ended_at, ?) - started_at > ?")
            values += [time.time(), wanted.longer_than]
        if wanted.text is not None:
            conditions.append(_HAS_TEXT)
            values += [small_letters(wanted.text_in_json), small_letters(wanted.text)]
        if wanted.before is not None:
            conditions.append("id < ?")
            values.append(wanted.before)
        if wanted.path is not None:
            conditions.append("id IN (SELECT run FROM run_paths WHERE path = ?)")
            values.append(wanted.path)
        if (below := wanted.hosts_below) is not None:
            conditions.append("id IN (SELECT run FROM run_hosts WHERE substr(host, -length(?)) = ?)")
            values += [below, below]
        elif wanted.host is not None:
            conditions.append("id IN (SELECT run FROM run_hosts WHERE host = ?)")
            values.append(wanted.host)
        if wanted.is_open is not None:
            conditions.append("ended_at IS NULL" if wanted.is_open else "ended_at IS NOT NULL")
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._documents(f"{where} ORDER BY id DESC LIMIT ?", *values, min(wanted.limit, MAX_RUNS))

    def named(self, prefix: str, limit: int) -> list[str]:
        return self._documents("WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?", prefix, prefix + "\x7f", limit)

    def neighbours(self, name: str) -> list[str]:
        query = """
            SELECT * FROM (SELECT id FROM runs WHERE id <= ? ORDER BY id DESC LIMIT 2)
            UNION ALL SELECT * FROM (SELECT id FROM runs WHERE id > ? ORDER BY id LIMIT 1)
        """
        return [row[0] for row in self._connection.database.rows(query, [name, name])]

    def open_runs(self, host: HostId) -> list[str]:
        return self._documents("WHERE host = ? AND ended_at IS NULL", host)

    def added(self, after: int, but: Collection[HostId], also: Collection[RunId]) -> tuple[int, list[str]]:
        newest = self._connection.database.rows("SELECT coalesce(max(number), 0) FROM runs")[0][0]
        if newest <= after and not also:
            return newest, []
        others = f"number > ? AND number <= ? AND host NOT IN ({', '.join('?' * len(but))})"
        where = f"WHERE ({others}) OR id IN ({', '.join('?' * len(also))}) ORDER BY number"
        return newest, self._documents(where, after, newest, *but, *also)

    def take_over(self, runs: Sequence[RunId], of: HostId, to: HostId) -> bool:
        where = f"id IN ({', '.join('?' * len(runs))}) AND host = ? AND ended_at IS NULL"
        with self._connection.writing() as database:
            # The transaction keeps everyone else from writing between the two statements.
            found = database.rows(f"SELECT count(*) FROM runs WHERE {where}", [*runs, of])[0][0]  # noqa: S608  bound
            if not runs or found != len(runs):
                return False
            change = "UPDATE runs SET host = ?, document = json_set(document, '$.rest.host', ?)"
            database.execute(f"{change} WHERE {where}", [to, to, *runs, of])
            return True

    def events_of(self, run: RunId, after: int = -1) -> list[Event]:
        query = "SELECT seq, at, type, status, facts FROM events WHERE run = ? AND seq > ? ORDER BY seq"
        rows = self._connection.database.rows(query, [run, after])
        return [Event(run, seq, at, type_, status, decode(facts)) for seq, at, type_, status, facts in rows]

    def ended_before(self, at: float, workspace: str | None, but: Collection[str]) -> list[RunId]:
        query, values = "SELECT id FROM runs WHERE ended_at < ?", [at, *but]
        if but:
            query += f" AND workspace NOT IN ({', '.join('?' * len(but))})"
        if workspace is not None:
            query, values = f"{query} AND workspace = ?", [*values, workspace]
        return [RunId(row[0]) for row in self._connection.database.rows(f"{query} ORDER BY id", values)]

    def remove(self, runs: Sequence[RunId]) -> None:
        marks = ", ".join("?" * len(runs))
        with self._connection.writing() as database:
            for table, column in (("events", "run"), ("run_paths", "run"), ("run_hosts", "run"), ("runs", "id")):
                database.execute(f"DELETE FROM {table} WHERE {column} IN ({marks})", runs)  # noqa: S608  ours

    def request_cancel(self, run: RunId, who: str, at: float) -> None:
        with self._connection.writing() as database:
            database.execute("INSERT OR REPLACE INTO cancels VALUES (?, ?, ?)", [run, at, who])

    def take_cancels(self, runs: Collection[RunId]) -> list[tuple[RunId, str]]:
        rows = self._connection.database.rows("SELECT run, who FROM cancels")
        found = [(RunId(run), who) for run, who in rows if run in runs]
        if not found:
            return []
        with self._connection.writing() as database:
            return [each for each in found if database.execute("DELETE FROM cancels WHERE run = ?", [each[0]])]

    def _documents(self, where: str, *values: Any) -> list[str]:
        query = f"SELECT document FROM runs {where}"  # noqa: S608  values are bound
        return [row[0] for row in self._connection.database.rows(query, values)]


def _array(documents: Sequence[bytes]) -> str:
    return f"[{b','.join(documents).decode()}]"
