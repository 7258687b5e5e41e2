"""What a check of `haft doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

CheckState = Literal["ok", "warn", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """One finding."""

    check: str
    state: CheckState
    detail: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"check": self.check, "state": self.state, "detail": self.detail, "hint": self.hint}
