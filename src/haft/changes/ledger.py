"""The list of change sets: which there are, in which order they were committed, and what became of each.

What they hold lies in the area of their workspace; the journals there are the truth, and this list is completed from
them after a crash.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from haft.contracts import AmbiguousRun, ChangesState, UnknownRun
from haft.storage import Database, decode, encode

Verb = Literal["call", "undo", "redo"]

_COLUMNS = (
    "seq, run, workspace, area, who, thread, parent, verb, reverses, engine, state, reason, at, files, kept, latest"
)
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One change set in the list."""

    seq: int
    """The order in which they were committed."""
    run: str
    workspace: str
    area: str
    who: str
    thread: str
    parent: str | None
    verb: Verb
    reverses: tuple[str, ...]
    """The runs that an undo took back, or a redo brought back."""
    engine: str
    state: ChangesState
    reason: str | None
    """Why it is held, or why it can no longer be undone."""
    at: float
    files: int
    kept: bool
    """Whether what it displaced is still there."""
    latest: str
    """The run that moved these files last: this one, or an undo or redo of it."""

    @property
    def directory(self) -> str:
        """Where it lies below its area."""
        return f"{'held' if self.state == 'held' else 'kept'}/{self.run}"

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "workspace": self.workspace,
            "who": self.who,
            "thread": self.thread,
            "parent": self.parent,
            "engine": self.engine,
            "state": self.state,
            "reason": self.reason,
            "files": self.files,
            "undoable": self.kept and self.state == "committed",
        }


class Ledger:
    """One connection, taken in turns."""

    def __init__(self, database_path: str) -> None:
        self._path = database_path
        self._opened: Database | None = None
        self._turn = threading.RLock()

    @property
    def _database(self) -> Database:
        if self._opened is None:
            self._opened = Database(self._path)
        return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def put(self, row: Row, states: Sequence[tuple[str, ChangesState]] = ()) -> None:
        """Add a change set at the end of the list, and with it what becomes of others by it: their state. One that is
        there already moves to the end, unless nothing changes."""
        with self._turn, self._database.transaction():
            known = self._rows("run = ?", [row.run])
            if known and known[0].state == row.state:
                return
            self._database.execute("DELETE FROM change_sets WHERE run = ?", [row.run])
            self._database.execute(
                f"INSERT INTO change_sets ({_COLUMNS}) VALUES ({', '.join('?' * 16)})",  # noqa: S608  names of ours
                [
                    None, row.run, row.workspace, row.area, row.who, row.thread, row.parent, row.verb,
                    encode(list(row.reverses)).decode(), row.engine, row.state, row.reason, row.at or time.time(),
                    row.files, int(row.kept), row.latest,
                ],
            )  # fmt: skip
            for run, state in states:
                self._database.execute(
                    "UPDATE change_sets SET state = ?, latest = ? WHERE run = ?", [state, row.run, run]
                )

    def set_state(self, run: str, state: ChangesState, reason: str | None = None) -> None:
        with self._turn, self._database.transaction():
            self._database.execute("UPDATE change_sets SET state = ?, reason = ? WHERE run = ?", [state, reason, run])

    def forget_images(self, run: str, reason: str) -> None:
        """What it displaced is gone: it can be seen, and not be undone."""
        with self._turn, self._database.transaction():
            self._database.execute("UPDATE change_sets SET kept = 0, reason = ? WHERE run = ?", [reason, run])

    def sync(self) -> None:
        """What was said so far survives power loss from here on."""
        with self._turn:
            self._database.sync()

    def latest(self) -> int:
        """The number of the one that was put into the list last."""
        found = self._rows("1 ORDER BY seq DESC LIMIT 1", [])
        return found[0].seq if found else 0

    def since(self, seq: int) -> list[Row]:
        """Those that were put into the list after one, of all workspaces, oldest first."""
        return self._rows("seq > ? ORDER BY seq", [seq])

    def get(self, run: str) -> Row | None:
        found = self._rows("run = ?", [run])
        return found[0] if found else None

    def find(self, name: str) -> Row:
        """One change set, by its run or the beginning of that which only one has."""
        if (exactly := self.get(name)) is not None:
            return exactly
        if len(name) < _SHORTEST:
            raise UnknownRun(name)
        found = self._rows("run >= ? AND run < ? ORDER BY run DESC LIMIT 6", [name, name + "\x7f"])
        if not found:
            raise UnknownRun(name)
        if len(found) > 1:
            raise AmbiguousRun(name, [row.run for row in found])
        return found[0]

    def last(self, workspace: str, who: str) -> Row | None:
        """What `haft undo` alone takes back."""
        found = self._rows(
            "workspace = ? AND who = ? AND verb = 'call' AND state = 'committed' AND files > 0"
            " ORDER BY seq DESC LIMIT 1",
            [workspace, who],
        )
        return found[0] if found else None

    def last_undone(self, workspace: str, who: str) -> Row | None:
        """What was taken back last, and not brought back since."""
        found = self._rows(
            "workspace = ? AND who = ? AND verb = 'call' AND state = 'undone' AND files > 0"
            " ORDER BY latest DESC LIMIT 1",
            [workspace, who],
        )
        return found[0] if found else None

    def later(self, row: Row) -> list[Row]:
        """Those that were committed after it in the same workspace, oldest first."""
        return self._rows("workspace = ? AND seq > ? ORDER BY seq", [row.workspace, row.seq])

    def of_parent(self, parent: str) -> list[Row]:
        return self._rows("parent = ? AND verb = 'call' ORDER BY seq", [parent])

    def of_thread(self, workspace: str, thread: str) -> list[Row]:
        return self._rows(
            "workspace = ? AND thread = ? AND verb = 'call' AND state = 'committed' AND files > 0 ORDER BY seq",
            [workspace, thread],
        )

    def all(self, workspace: str | None = None, state: str | None = None) -> list[Row]:
        """Oldest first."""
        conditions, values = ["1"], []
        for name, value in (("workspace", workspace), ("state", state)):
            if value is not None:
                conditions.append(f"{name} = ?")
                values.append(value)
        return self._rows(f"{' AND '.join(conditions)} ORDER BY seq", values)

    def _rows(self, where: str, values: Sequence[Any]) -> list[Row]:
        query = f"SELECT {_COLUMNS} FROM change_sets WHERE {where}"  # noqa: S608  values are bound
        with self._turn:
            return [_row(values) for values in self._database.rows(query, values)]


def _row(values: tuple[Any, ...]) -> Row:
    words = dict(zip(_COLUMNS.split(", "), values, strict=True))
    words["reverses"] = tuple(decode(words["reverses"]))
    words["kept"] = bool(words["kept"])
    return Row(**words)
