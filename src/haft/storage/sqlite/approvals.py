"""The inbox in SQLite."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError, HostId, RunId, ThreadId
from haft.storage.encoding import decode, encode
from haft.storage.ports.approvals import Answered, ApprovalStore, Waiting

if TYPE_CHECKING:
    from haft.storage.sqlite.connection import SqliteConnection

_COLUMNS: Final = (
    "id, run, host, workspace, who, thread, created_at, expires_at, tried, fingerprint, shown, state, answer"
)


class SqliteApprovals(ApprovalStore):
    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection

    def put(self, waiting: Waiting, forget_before: float) -> None:
        with self._connection.writing() as database:
            database.execute("DELETE FROM approvals WHERE expires_at < ?", [forget_before])
            database.execute(
                f"INSERT INTO approvals ({_COLUMNS}) VALUES ({', '.join('?' * 13)})",  # noqa: S608  names of ours
                [
                    waiting.id, waiting.run, waiting.host, waiting.workspace, waiting.who, waiting.thread,
                    waiting.created_at, waiting.expires_at, int(waiting.tried), waiting.fingerprint,
                    encode(waiting.shown).decode(), "open", None,
                ],
            )  # fmt: skip

    def open(self, now: float, workspace: str | None = None) -> list[Waiting]:
        where, values = ("AND workspace = ?", [workspace]) if workspace is not None else ("", [])
        return self._rows(f"state = 'open' AND expires_at > ? {where} ORDER BY id", now, *values)

    def named(self, prefix: str) -> list[Waiting]:
        where = "substr(id, 1, ?) = ? OR substr(run, 1, ?) = ? ORDER BY id DESC"
        return self._rows(where, len(prefix), prefix, len(prefix), prefix)

    def answer(self, name: str, answered: Answered) -> bool:
        return self._change(
            "UPDATE approvals SET state = 'answered', answer = ? WHERE id = ? AND state = 'open' AND expires_at > ?",
            encode(answered.to_json()).decode(),
            name,
            answered.at,
        )

    def answer_to(self, name: str) -> Answered | None:
        query = "SELECT answer FROM approvals WHERE id = ? AND state = 'answered'"
        rows = self._connection.database.rows(query, [name])
        return _answered(rows[0][0]) if rows else None

    def reopen(self, name: str) -> bool:
        return self._change(
            "UPDATE approvals SET state = 'open', answer = NULL WHERE id = ? AND state = 'answered'", name
        )

    def show_anew(self, name: str, shown: Mapping[str, Any]) -> bool:
        return self._change(
            "UPDATE approvals SET shown = ? WHERE id = ? AND state = 'open'", encode(shown).decode(), name
        )

    def prolong(self, name: str, expires_at: float) -> None:
        self._change("UPDATE approvals SET expires_at = ? WHERE id = ? AND state = 'open'", expires_at, name)

    def close_open(self, name: str, answered: Answered | None = None) -> bool:
        answer = None if answered is None else encode(answered.to_json()).decode()
        return self._change(
            "UPDATE approvals SET state = 'closed', shown = '{}', answer = ? WHERE id = ? AND state = 'open'",
            answer,
            name,
        )

    def take_answered(self, name: str) -> bool:
        return self._change(
            "UPDATE approvals SET state = 'taken', shown = '{}' WHERE id = ? AND state = 'answered'", name
        )

    def answered(self, fingerprint: str, now: float) -> list[Waiting]:
        where = "fingerprint = ? AND state = 'answered' AND tried = 0 AND expires_at > ? ORDER BY id"
        return self._rows(where, fingerprint, now)

    def has_answered(self, fingerprint: str) -> bool:
        query = "SELECT 1 FROM approvals WHERE fingerprint = ? AND state = 'answered' LIMIT 1"
        return bool(self._connection.database.rows(query, [fingerprint]))

    def _change(self, statement: str, *values: Any) -> bool:
        with self._connection.writing() as database:
            return bool(database.execute(statement, values))

    def _rows(self, where: str, *values: Any) -> list[Waiting]:
        query = f"SELECT {_COLUMNS} FROM approvals WHERE {where}"  # noqa: S608  values are bound
        return [_read(row) for row in self._connection.database.rows(query, values)]


def _read(row: tuple[Any, ...]) -> Waiting:
    (*names, created, expires, tried, fingerprint, shown, state, answer) = row
    name, run, host, workspace, who, thread = names
    return Waiting(
        name,
        RunId(run),
        HostId(host),
        workspace,
        who,
        ThreadId(thread),
        created,
        expires,
        bool(tried),
        fingerprint,
        decode(shown),
        state,
        None if answer is None else _answered(answer),
    )


def _answered(text: str) -> Answered:
    """The answer in a row. A text that haft did not write counts as a rejection, with a digest that matches no
    request."""
    with contextlib.suppress(ValueError, TypeError, HaftError):
        fields = decode(text)
        found = Answered(**fields)
        _ = found.principal  # Raises if the name is not valid.
        if isinstance(fields["approved"], bool):
            return found
    return Answered(approved=False, who="?", seen="", at=0.0)
