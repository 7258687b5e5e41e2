"""Remembered rules and approved definitions in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haft.storage.encoding import decode, encode
from haft.storage.ports.rules_and_pins import KeptPin, KeptRule, PinStore, RuleStore

if TYPE_CHECKING:
    from haft.storage.sqlite.leased_database import LeasedDatabase


class SqliteRules(RuleStore):
    def __init__(self, connection: LeasedDatabase) -> None:
        self._connection = connection

    def remember(self, workspace: str, rule: KeptRule) -> None:
        text = encode(rule.rule).decode()
        with self._connection.writing() as database:
            database.execute(
                "DELETE FROM remembered WHERE workspace = ? AND rule = ? AND thread IS ?",
                [workspace, text, rule.thread],
            )
            database.execute(
                "INSERT INTO remembered (workspace, thread, rule, pin, who, at) VALUES (?, ?, ?, ?, ?, ?)",
                [workspace, rule.thread, text, rule.pin, rule.who, rule.at],
            )

    def all(self, workspace: str) -> list[KeptRule]:
        query = "SELECT seq, thread, rule, pin, who, at FROM remembered WHERE workspace = ? ORDER BY seq DESC"
        rows = self._connection.database.rows(query, [workspace])
        return [KeptRule(number, thread, decode(rule), *rest) for number, thread, rule, *rest in rows]

    def forget(self, workspace: str, number: int) -> bool:
        with self._connection.writing() as database:
            return bool(database.execute("DELETE FROM remembered WHERE workspace = ? AND seq = ?", [workspace, number]))


class SqlitePins(PinStore):
    def __init__(self, connection: LeasedDatabase) -> None:
        self._connection = connection

    def of(self, workspace: str, tool: str) -> KeptPin | None:
        found = self._pins("workspace = ? AND tool = ?", workspace, tool)
        return found[0] if found else None

    def holding(self, workspace: str, path: str) -> list[KeptPin]:
        return self._pins("workspace = ? AND instr(definition, ?)", workspace, encode(path).decode())

    def add_if_absent(self, workspace: str, pin: KeptPin, who: str, at: float) -> str:
        with self._connection.writing() as database:
            self._put("INSERT OR IGNORE", workspace, pin, who, at)
            rows = database.rows("SELECT pin FROM pins WHERE workspace = ? AND tool = ?", [workspace, pin.tool])
        return str(rows[0][0])

    def approve(self, workspace: str, pin: KeptPin, who: str, at: float) -> None:
        with self._connection.writing():
            self._put("INSERT OR REPLACE", workspace, pin, who, at)

    def _put(self, how: str, workspace: str, pin: KeptPin, who: str, at: float) -> None:
        values = [workspace, pin.tool, pin.digest, encode(pin.definition).decode(), who, at]
        self._connection.database.execute(f"{how} INTO pins VALUES (?, ?, ?, ?, ?, ?)", values)

    def _pins(self, where: str, *values: Any) -> list[KeptPin]:
        query = f"SELECT tool, pin, definition FROM pins WHERE {where}"  # noqa: S608  values are bound
        rows = self._connection.database.rows(query, values)
        return [KeptPin(tool, digest, decode(definition)) for tool, digest, definition in rows]
