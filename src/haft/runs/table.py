"""The tables of runs: how entries get in, and how they are asked for.

Entries go in as JSON and are taken apart by the database itself: one statement for a whole group, which does not hold
the interpreter's lock and so leaves the event loop alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haft.contracts import Event, HostId, RunId
from haft.runs.entry import Entry, RunRecord
from haft.storage import Database, decode

MOST_RUNS = 1 << 40
"""More than there will be: what a person types may be longer than the database counts."""

_RUNS = """
    INSERT INTO runs (id, host, tool, status, who, thread, parent, workspace, started_at, ended_at, document)
    SELECT value ->> '$.record.run', value ->> '$.rest.host', coalesce(value ->> '$.record.tool', ''),
           value ->> '$.record.status', coalesce(value ->> '$.record.who', ''),
           coalesce(value ->> '$.record.thread', ''), value ->> '$.record.parent',
           coalesce(value ->> '$.record.workspace', ''), value ->> '$.rest.startedAt', value ->> '$.rest.endedAt', value
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


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs. Every field that is set must fit."""

    tool: str | None = None
    status: str | None = None
    who: str | None = None
    thread: str | None = None
    parent: str | None = None
    workspace: str | None = None
    path: str | None = None
    since: float | None = None
    limit: int = 50

    def exact(self) -> list[tuple[str, str]]:
        """The columns that must have a value, with it."""
        names = ("tool", "status", "who", "thread", "parent", "workspace")
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]

    def fits(self, run: RunRecord) -> bool:
        return (
            all(run.record[name] == value for name, value in self.exact())
            and (self.since is None or run.started_at >= self.since)
            and (self.path is None or self.path in run.changed_paths)
        )


def put(database: Database, entries: Sequence[Entry]) -> None:
    """Write entries; call it inside a transaction."""
    lines = [entry.line for entry in entries]
    database.execute(_RUNS, [_array(lines)])
    # Most have neither: they are told by their own letters, which cannot stand inside a JSON string unescaped.
    for statement, empty in ((_EVENTS, b'"noted":[]'), (_PATHS, b'"files":[]')):
        some = [line for line in lines if empty not in line]
        if some:
            database.execute(statement, [_array(some)])


def _array(lines: Sequence[bytes]) -> str:
    return f"[{b','.join(lines).decode()}]"


def select(database: Database, wanted: Filter) -> list[RunRecord]:
    """The runs that fit, newest first."""
    conditions = [f"{name} = ?" for name, _ in wanted.exact()]
    values: list[Any] = [value for _, value in wanted.exact()]
    if wanted.since is not None:
        conditions.append("started_at >= ?")
        values.append(wanted.since)
    if wanted.path is not None:
        conditions.append("id IN (SELECT run FROM run_paths WHERE path = ?)")
        values.append(wanted.path)
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    query = f"SELECT document FROM runs {where} ORDER BY id DESC LIMIT ?"  # noqa: S608  values are bound
    return [RunRecord.from_text(row[0]) for row in database.rows(query, [*values, min(wanted.limit, MOST_RUNS)])]


def by_prefix(database: Database, prefix: str) -> list[RunRecord]:
    """The newest runs whose name begins so: enough to name them to whoever has to choose."""
    query = "SELECT document FROM runs WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 6"
    return [RunRecord.from_text(row[0]) for row in database.rows(query, [prefix, prefix + "\x7f"])]


def neighbours(database: Database, name: str) -> list[str]:
    """The run of that name, where there is one, and those before and after it in the order of names."""
    query = """
        SELECT * FROM (SELECT id FROM runs WHERE id <= ? ORDER BY id DESC LIMIT 2)
        UNION ALL SELECT * FROM (SELECT id FROM runs WHERE id > ? ORDER BY id LIMIT 1)
    """
    return [row[0] for row in database.rows(query, [name, name])]


def open_runs(database: Database, host: HostId) -> list[RunRecord]:
    """The runs of a host that have not ended."""
    query = "SELECT document FROM runs WHERE host = ? AND ended_at IS NULL"
    return [RunRecord.from_text(row[0]) for row in database.rows(query, [host])]


def events_of(database: Database, run: RunId, after: int = -1) -> list[Event]:
    """The kept events of a run beyond a number."""
    query = "SELECT seq, at, type, status, facts FROM events WHERE run = ? AND seq > ? ORDER BY seq"
    rows = database.rows(query, [run, after])
    return [Event(run, seq, at, type_, status, decode(facts)) for seq, at, type_, status, facts in rows]
