"""The change ledger in SQLite."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from haft.contracts import ChangesState
from haft.storage.encoding import decode, encode
from haft.storage.ports.change_sets import Ledger, Row

if TYPE_CHECKING:
    from haft.storage.sqlite.connection import SqliteConnection

_COLUMNS = (
    "seq, run, workspace, area, who, thread, parent, verb, reverses, engine, state, reason, at, files, kept, latest"
)


class SqliteLedger(Ledger):
    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def put(self, row: Row, states: Sequence[tuple[str, ChangesState]] = ()) -> None:
        with self._connection.writing() as database:
            known = self._rows("run = ?", [row.run])
            if known and known[0].state == row.state:
                return
            database.execute("DELETE FROM change_sets WHERE run = ?", [row.run])
            database.execute(
                f"INSERT INTO change_sets ({_COLUMNS}) VALUES ({', '.join('?' * 16)})",  # noqa: S608  names of ours
                [
                    None, row.run, row.workspace, row.area, row.who, row.thread, row.parent, row.verb,
                    encode(list(row.reverses)).decode(), row.engine, row.state, row.reason, row.at or time.time(),
                    row.files, int(row.kept), row.latest,
                ],
            )  # fmt: skip
            for run, state in states:
                database.execute("UPDATE change_sets SET state = ?, latest = ? WHERE run = ?", [state, row.run, run])

    def set_state(self, run: str, state: ChangesState, reason: str | None = None) -> None:
        self._change("UPDATE change_sets SET state = ?, reason = ? WHERE run = ?", [state, reason, run])

    def forget_images(self, run: str, reason: str) -> None:
        self._change("UPDATE change_sets SET kept = 0, reason = ? WHERE run = ?", [reason, run])

    def sync(self) -> None:
        self._connection.database.sync()

    def latest(self) -> int:
        found = self._rows("1 ORDER BY seq DESC LIMIT 1", [])
        return found[0].seq if found else 0

    def since(self, seq: int) -> list[Row]:
        return self._rows("seq > ? ORDER BY seq", [seq])

    def get(self, run: str) -> Row | None:
        return self._first("run = ?", [run])

    def named(self, prefix: str, limit: int) -> list[Row]:
        return self._rows("run >= ? AND run < ? ORDER BY run DESC LIMIT ?", [prefix, prefix + "\x7f", limit])

    def last(self, workspace: str, who: str) -> Row | None:
        return self._first(
            "workspace = ? AND who = ? AND verb = 'call' AND state = 'committed' AND files > 0"
            " ORDER BY seq DESC LIMIT 1",
            [workspace, who],
        )

    def last_undone(self, workspace: str, who: str) -> Row | None:
        return self._first(
            "workspace = ? AND who = ? AND verb = 'call' AND state = 'undone' AND files > 0"
            " ORDER BY latest DESC LIMIT 1",
            [workspace, who],
        )

    def later(self, row: Row) -> list[Row]:
        return self._rows("workspace = ? AND seq > ? ORDER BY seq", [row.workspace, row.seq])

    def of_parent(self, parent: str) -> list[Row]:
        return self._rows("parent = ? AND verb = 'call' ORDER BY seq", [parent])

    def of_thread(self, workspace: str, thread: str) -> list[Row]:
        return self._rows(
            "workspace = ? AND thread = ? AND verb = 'call' AND state = 'committed' AND files > 0 ORDER BY seq",
            [workspace, thread],
        )

    def all(self, workspace: str | None = None, state: str | None = None) -> list[Row]:
        conditions, values = ["1"], []
        for name, value in (("workspace", workspace), ("state", state)):
            if value is not None:
                conditions.append(f"{name} = ?")
                values.append(value)
        return self._rows(f"{' AND '.join(conditions)} ORDER BY seq", values)

    def close(self) -> None:
        self._connection.close()

    def _change(self, statement: str, values: Sequence[Any]) -> None:
        with self._connection.writing() as database:
            database.execute(statement, values)

    def _first(self, where: str, values: Sequence[Any]) -> Row | None:
        found = self._rows(where, values)
        return found[0] if found else None

    def _rows(self, where: str, values: Sequence[Any]) -> list[Row]:
        query = f"SELECT {_COLUMNS} FROM change_sets WHERE {where}"  # noqa: S608  values are bound
        return [_row(values) for values in self._connection.database.rows(query, values)]


def _row(values: tuple[Any, ...]) -> Row:
    words = dict(zip(_COLUMNS.split(", "), values, strict=True))
    words["reverses"] = tuple(decode(words["reverses"]))
    words["kept"] = bool(words["kept"])
    return Row(**words)
