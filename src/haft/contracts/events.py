"""The one event vocabulary: emitted once by the pipeline, read by every surface."""

from __future__ import annotations

import datetime
import functools
from typing import Any, Literal

from haft.contracts.names import RunId
from haft.contracts.states import Status
from haft.values import dataclass, field

EventType = Literal["status", "stdout", "stderr", "progress", "child", "outcome"]


@functools.lru_cache(maxsize=8)
def _iso_second(second: int) -> str:
    return datetime.datetime.fromtimestamp(second, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def iso_time(at: float) -> str:
    """Seconds since the epoch as RFC 3339 in UTC, with milliseconds."""
    milliseconds = int(at * 1000)
    return f"{_iso_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run. `status` is the run's status at that moment, whatever the type."""

    run: RunId
    seq: int
    """Counts from 0 within the run; an observer in another process sees the same numbers."""
    at: float
    type: EventType
    status: Status
    facts: dict[str, Any] = field(default_factory=dict)
    """By type: a status `blocked-on-user` has `request`, `reason` and `toAllow` (what could be allowed from now on);
    stdout and stderr have `text` (and `skipped`, the bytes that a slow reader missed), progress has
    `message` and `fraction`, child has `child`, `tool` and `became` (its status), outcome has `outcome`."""

    @property
    def text(self) -> str:
        """The output that came, for stdout and stderr; the message, for progress."""
        return str(self.facts.get("text") or self.facts.get("message") or "")

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "seq": self.seq,
            "at": iso_time(self.at),
            "type": self.type,
            "status": self.status,
            **self.facts,
        }
