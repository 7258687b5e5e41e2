"""The change ledger in SQLite."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from haft.contracts import ChangesState
from haft.storage.encoding import decode, encode
from haft.storage.ports.change_sets import Ledger, Row

if TYPE_CHECKING:
    from haft.storage.sqlite.leased_database import LeasedDatabase

_COLUMNS = (
    "seq, run, workspace, area, who, thread, parent, verb, reverses, engine, state, reason, at, files, kept, latest"
)

_WORKSPACE = "(SELECT id FROM workspaces WHERE path = ?)"
_UNDOABLE = "kept = 1 AND state = 'committed' AND verb = 'call' AND files > 0"
_LATEST = (1 << 63) - 1
_UNKNOWN = ""
"""The path that stands for the unknown paths of a change set, which a host with an earlier format left when it was
killed."""
_MAX_TERMS = 100
"""How many terms one query may have; SQLite allows at most 500."""


class SqliteLedger(Ledger):
    def __init__(self, connection: LeasedDatabase) -> None:
        self._connection = connection

    def put(
        self, row: Row, states: Sequence[tuple[str, ChangesState]] = (), paths: Collection[str] | None = None
    ) -> None:
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
            if paths:
                self._put_paths(row, known[0].seq if known else None, _array(paths))
            for run, state in states:
                database.execute("UPDATE change_sets SET state = ?, latest = ? WHERE run = ?", [state, row.run, run])

    def _put_paths(self, row: Row, old: int | None, paths: str) -> None:
        database = self._connection.database
        database.execute("INSERT OR IGNORE INTO workspaces (path) VALUES (?)", [row.workspace])
        if old is not None:
            database.execute(
                f"DELETE FROM change_paths WHERE workspace = {_WORKSPACE} AND seq = ?"  # noqa: S608  values are bound
                " AND path IN (SELECT value FROM json_each(?))",
                [row.workspace, old, paths],
            )
        database.execute(
            "INSERT OR IGNORE INTO change_paths (workspace, path, seq)"  # noqa: S608  values are bound
            f" SELECT {_WORKSPACE}, value, (SELECT seq FROM change_sets WHERE run = ?) FROM json_each(?)",
            [row.workspace, row.run, paths],
        )

    def set_state(self, run: str, state: ChangesState, reason: str | None = None) -> None:
        self._change("UPDATE change_sets SET state = ?, reason = ? WHERE run = ?", [state, reason, run])

    def set_files(self, run: str, files: int) -> None:
        self._change("UPDATE change_sets SET files = ? WHERE run = ?", [files, run])

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

    def touched(self, workspace: str, paths: Collection[str], after: int) -> set[str]:
        rows = self._connection.database.rows(
            "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM change_paths"  # noqa: S608  values are bound
            f" WHERE workspace = {_WORKSPACE} AND path = value AND seq > ?)",
            [_array([_UNKNOWN, *paths]), workspace, after],
        )
        found = {row[0] for row in rows}
        return {path for path in paths if _UNKNOWN in found or _key(path) in found}

    def touching(
        self,
        workspace: str,
        paths: Collection[str],
        *,
        after: int = 0,
        before: int | None = None,
        limit: int,
        newest_first: bool = True,
    ) -> list[Row]:
        order = "DESC" if newest_first else ""
        # Select the first few change sets of each path in the order of the index, and of all these the nearest.
        each = (
            f"SELECT * FROM (SELECT seq FROM change_paths WHERE workspace = {_WORKSPACE} AND path = ?"  # noqa: S608
            f" AND seq > ? AND seq < ? ORDER BY seq {order} LIMIT ?)"
        )
        until = _LATEST if before is None else before
        keys = [*dict.fromkeys(map(_key, [_UNKNOWN, *paths]))] if paths else []
        found: dict[int, Row] = {}
        for some in (keys[start : start + _MAX_TERMS] for start in range(0, len(keys), _MAX_TERMS)):
            query = f"seq IN ({' UNION '.join([each] * len(some))}) ORDER BY seq {order} LIMIT ?"
            values = [value for key in some for value in (workspace, key, after, until, limit)]
            found.update((row.seq, row) for row in self._rows(query, [*values, limit]))
        return [found[seq] for seq in sorted(found, reverse=newest_first)[:limit]]

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

    def held(self) -> list[Row]:
        return self._rows("state = 'held' ORDER BY seq", [])

    def undoable(self) -> dict[str, tuple[int, float]]:
        query = f"SELECT area, count(*), min(at) FROM change_sets WHERE {_UNDOABLE} GROUP BY area"  # noqa: S608  ours
        return {area: (count, at) for area, count, at in self._connection.database.rows(query)}

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


def _array(paths: Collection[str]) -> str:
    return encode([_key(path) for path in paths]).decode()


def _key(path: str) -> str:
    """A path in the form that the database accepts: bytes that are no UTF-8 are replaced. Two paths may get the same
    form; readers of the change sets tell them apart."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
