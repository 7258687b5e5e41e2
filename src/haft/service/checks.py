"""The result of one check of `haft doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

CheckState = Literal["ok", "warn", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    check: str
    state: CheckState
    detail: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"check": self.check, "state": self.state, "detail": self.detail, "hint": self.hint}
