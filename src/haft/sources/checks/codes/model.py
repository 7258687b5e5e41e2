"""The type `Code`: one kind of finding, with its explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["error", "warning", "note"]
"""An error: the tool does not work, or is dangerous. A warning: the tool works less well. A note: good to know."""


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding."""

    code: str
    level: Level
    meaning: str
    """What the problem is, in one sentence."""
    explanation: str
    """Why the problem matters, and what to do."""
    bad: str
    """An example that has the problem."""
    good: str
    """The example without the problem."""
    fixable: bool = False
    """Whether `--fix` can fix such a problem."""

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
