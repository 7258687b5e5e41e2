"""Rules that people made by an answer: for a thread, or for good, in one workspace."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from haft.policy.rules.reading import rules_from
from haft.policy.rules.rule import Rule
from haft.storage import Database, decode, encode


@dataclass(frozen=True, slots=True)
class Remembered:
    """One such rule."""

    number: int
    rule: Rule
    who: str
    at: float


class Memory:
    """The remembered rules of one workspace. Use it from one thread at a time."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    def remember(self, rule: Mapping[str, Any], *, pin: str | None, thread: str | None, who: str) -> None:
        """From now on. Remembering the same again changes nothing."""
        text = encode(dict(rule)).decode()
        with self._database.transaction():
            self._database.execute(
                "DELETE FROM remembered WHERE workspace = ? AND rule = ? AND thread IS ?",
                [self._workspace, text, thread],
            )
            self._database.execute(
                "INSERT INTO remembered (workspace, thread, rule, pin, who, at) VALUES (?, ?, ?, ?, ?, ?)",
                [self._workspace, thread, text, pin, who, time.time()],
            )

    def all(self) -> list[Remembered]:
        """The latest first."""
        rows = self._database.rows(
            "SELECT seq, thread, rule, pin, who, at FROM remembered WHERE workspace = ? ORDER BY seq DESC",
            [self._workspace],
        )
        return [
            Remembered(number, _rule(number, thread, rule, pin), who, at) for number, thread, rule, pin, who, at in rows
        ]

    def forget(self, number: int) -> bool:
        """False where there was none of that number."""
        with self._database.transaction():
            return bool(
                self._database.execute(
                    "DELETE FROM remembered WHERE workspace = ? AND seq = ?", [self._workspace, number]
                )
            )


def _rule(number: int, thread: str | None, text: str, pin: str | None) -> Rule:
    from dataclasses import replace

    source = f"remembered:{number}"
    rule = rules_from([decode(text)], origin="remembered", source=source, lines=None)[0]
    return replace(rule, source=source, pin=pin, thread=thread)
