"""How much a call may use. A value: config fills it, the pipeline applies it, the outcome shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits in force for a host. Zero means none, where the line says so."""

    max_output_bytes: int = 50_000
    """Of the output, how much the outcome shows; the whole is kept."""
    max_kept_output_bytes: int = 100_000_000
    """Of the output, how much is kept on disk: its head and its tail."""
    max_seconds: float = 120.0
    """Wall clock of a call while in progress."""
    max_idle_seconds: float = 0.0
    """Seconds without output or progress before a call is ended; 0: no idle deadline."""
    max_concurrent: int = 10
    """Calls in progress at once in one host; the others are queued."""
    max_file_bytes: int = 10_000_000
    """The largest file that a built-in file tool reads whole or writes."""


@dataclass(frozen=True, slots=True)
class LimitsApplied:
    """What one call was held to, and which limit ended it, if one did."""

    applied: dict[str, Any] = field(default_factory=dict)
    hit: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"applied": self.applied, "hit": self.hit}
