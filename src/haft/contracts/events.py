"""The events of a run. The pipeline emits each event once, and every surface reads the same events."""

from __future__ import annotations

import datetime
import functools
from typing import Any, Literal

from haft.contracts.names import RunId
from haft.contracts.states import Status
from haft.values import dataclass, field

EventType = Literal["status", "stdout", "stderr", "progress", "child", "connection", "outcome"]


@functools.lru_cache(maxsize=8)
def _iso_second(second: int) -> str:
    return datetime.datetime.fromtimestamp(second, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def iso_time(at: float) -> str:
    """Seconds since the epoch as RFC 3339 in UTC, with milliseconds."""
    milliseconds = int(at * 1000)
    return f"{_iso_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run. `status` is the run's status at that moment, for all types of events."""

    run: RunId
    seq: int
    """Counts from 0 in each run. Observers in other processes see the same numbers."""
    at: float
    type: EventType
    status: Status
    facts: dict[str, Any] = field(default_factory=dict)
    """Depends on the type. The status `blocked-on-user` has `request`, `reason` and `toAllow` (the rules that the
    answer can add). The status `in-progress` may have `cache`: whether the answer is from the cache, or why not. stdout
    and stderr have `text`, and `skipped` if a slow reader missed output. progress has `message` and `fraction`, child
    has `child`, `tool` and `became` (its status), outcome has `outcome`. connection has `state` (`open`, `ended`,
    `failed`, `refused`; `waiting` while a person is asked, `answered` afterwards), `host`, `port` and `message`;
    `waiting` also has `program`, and `request`, the id of the request."""

    @property
    def text(self) -> str:
        """The text of a stdout or stderr event, or the message of a progress or connection event; empty for other
        events."""
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
