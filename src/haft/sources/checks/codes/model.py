"""What a code is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "note"]
"""An error keeps a tool from working or is dangerous, a warning makes it worse, a note is good to know."""


@dataclass(frozen=True, slots=True)
class Code:
    """One thing that can be found."""

    code: str
    level: Level
    meaning: str
    """In one sentence."""
    explanation: str
    """Why it matters, and what to do."""
    bad: str
    """What has it."""
    good: str
    """What has not."""
    fixable: bool = False
    """Whether `--fix` can mend it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "level": self.level,
            "meaning": self.meaning,
            "explanation": self.explanation,
            "bad": self.bad,
            "good": self.good,
            "fixable": self.fixable,
        }
