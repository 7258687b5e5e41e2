"""The stored form of a run: a document of two halves, the same in the journal, in the database and when it is read
back.

`record` is exactly the entry of the run in the audit log; `rest` is stored only here: output, result, states. Both
halves are encoded once; later steps handle bytes. A run is written as a whole each time, so writing it again changes
nothing. Secrets are masked before a run is written to disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from haft.contracts import (
    OUTCOME_FIELDS,
    TERMINAL,
    UNAUDITED_FIELDS,
    Event,
    HostId,
    RunId,
    Secrets,
    Status,
    iso_time,
    with_current_names,
)
from haft.storage import decode, encode
from haft.values import dataclass

NOT_ENDED = "the call has not ended: what it changes is known at its end"


class Entry(NamedTuple):
    """A run that is being written to disk."""

    run: RunId
    is_open: bool
    recorded: bool
    """Whether the audit log already has the record of this run."""
    has_events: bool
    """Whether `line` has events, which no later entry of the run has."""
    record: bytes
    line: bytes


def entry_of(run: RunId, record: bytes, rest: dict[str, Any], clean: Any = bytes, *more: Secrets) -> Entry:
    """The entry of a run: `record` as it is, and `rest` in encoded form. `clean` masks the secrets in `rest`, also
    those that `more` names. `rest` has `host`, `startedAt`, `endedAt`, `output`, `stderr`, `result`, `truncated`,
    `notes`, `states` (number, time, status), `noted` (other events that were not written before) and `recorded`."""
    line = b'{"record":%s,"rest":%s}\n' % (record, clean(encode(rest), *more))
    return Entry(run, rest["endedAt"] is None, rest["recorded"], bool(rest["noted"]), record, line)


_RECORD = {"workspace", "arguments", "cwd", "digest", *OUTCOME_FIELDS} - {"startedAt", "cached", *UNAUDITED_FIELDS}
_REST = {"host", "startedAt", "endedAt", "states", "noted", "recorded", *UNAUDITED_FIELDS} - {"notes", "content"}
"""The fields that `rest` must have. Notes and content are not required, since runs of earlier versions have none."""


def entry_from_line(line: bytes) -> Entry | None:
    """The entry in a line of a journal; None if the line is incomplete or damaged."""
    if not line.endswith(b"}\n"):
        return None
    try:
        document = decode(line)
        record, rest = document["record"], document["rest"]
        if not (with_current_names(record).keys() >= _RECORD and rest.keys() >= _REST):
            return None
        if not all(isinstance(text, str) for text in (record["run"], record["status"], rest["host"])):
            return None
        float(rest["startedAt"])
        is_open, recorded, has_events = rest["endedAt"] is None, rest["recorded"], bool(rest["noted"])
        return Entry(record["run"], is_open, recorded, has_events, encode(record), line)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as it is read back; `haft log` and `haft show` print it."""

    record: dict[str, Any]
    rest: dict[str, Any]

    @classmethod
    def from_text(cls, text: str | bytes) -> RunRecord:
        document = decode(text)
        return cls(with_current_names(document["record"]), document["rest"])

    @property
    def id(self) -> RunId:
        return RunId(self.record["run"])

    @property
    def host(self) -> HostId:
        return HostId(self.rest["host"])

    @property
    def tool(self) -> str:
        return str(self.record["tool"])

    @property
    def status(self) -> Status:
        return cast("Status", self.record["status"])

    @property
    def who(self) -> str:
        return str(self.record["who"])

    @property
    def thread(self) -> str:
        return str(self.record["thread"])

    @property
    def parent(self) -> RunId | None:
        """The run that made this call; None if no run made it."""
        parent = self.record["parent"]
        return None if parent is None else RunId(parent)

    @property
    def batch(self) -> str | None:
        """The batch that the run belongs to; None for most runs."""
        batch: str | None = self.record.get("batch")
        return batch

    @property
    def started_at(self) -> float:
        return float(self.rest["startedAt"])

    @property
    def ended_at(self) -> float | None:
        ended = self.rest["endedAt"]
        return None if ended is None else float(ended)

    @property
    def is_open(self) -> bool:
        return self.status not in TERMINAL

    @property
    def last_seq(self) -> int:
        """The number of the run's latest status. Of two records of one run, the one with the higher number is newer."""
        return int(self.rest["states"][-1][0])

    @property
    def changed_paths(self) -> list[str]:
        return [change["path"] for change in self.record["changes"]["files"]]

    @property
    def changes(self) -> dict[str, Any]:
        """The changes of the run and their state. While the call runs, its changes are unknown, and the returned reason
        is `NOT_ENDED`. The stored reason is for the case that the host is killed before the run ends."""
        changes: dict[str, Any] = self.record["changes"]
        if self.is_open and not changes["complete"] and changes["state"] == "none":
            return {**changes, "reason": NOT_ENDED}
        return changes

    @property
    def paused(self) -> dict[str, Any] | None:
        """The call, as another host can make it again; None if no other host can: see `paused_runs`."""
        paused: dict[str, Any] | None = self.rest.get("paused")
        return paused

    @property
    def outcome(self) -> dict[str, Any]:
        """The outcome in its JSON form; for a run that has not ended, as far as it is known."""
        known = {
            "notes": [],  # Runs of earlier versions have none, and no content.
            "content": [],
            "cached": False,
            **self.rest,
            **self.record,
            "startedAt": iso_time(self.started_at),
            "durationMs": round(self.record["durationMs"]),
            "changes": self.changes,
        }
        return {name: known[name] for name in OUTCOME_FIELDS}

    def states(self) -> list[Event]:
        """Every status that the run had so far."""
        return [Event(self.id, seq, at, "status", status) for seq, at, status in self.rest["states"]]

    def noted(self) -> list[Event]:
        """The progress and other events that were written together with this record."""
        return [Event(self.id, seq, at, type_, status, facts) for seq, at, type_, status, facts in self.rest["noted"]]

    def outcome_event(self, seq: int) -> Event:
        """The last event of a run that has ended."""
        return Event(self.id, seq, self.ended_at or 0.0, "outcome", self.status, {"outcome": self.outcome})

    def to_json(self) -> dict[str, Any]:
        """The form for `--json`, with times as text."""
        record, ended = self.record, self.ended_at
        names = ("tool", "status", "who", "thread", "parent", "workspace", "arguments", "cwd", "digest")
        return {
            "id": self.id,
            **{name: record[name] for name in names},
            "batch": self.batch,
            "claim": self.record.get("claim"),
            "trace": record.get("trace"),
            "host": self.host,
            "startedAt": iso_time(self.started_at),
            "endedAt": None if ended is None else iso_time(ended),
            "states": [{"at": iso_time(event.at), "status": event.status} for event in self.states()],
            "outcome": self.outcome,
        }

    def ended(self, status: Status, error: dict[str, Any], at: float) -> RunRecord:
        """This run with a final status and an error, for a process that ends the run because its host was killed."""
        record = {
            **self.record,
            "type": "end",
            "at": iso_time(at),
            "status": status,
            "error": error,
            "durationMs": round((at - self.started_at) * 1000, 3),
        }
        # The number must be higher than those of all output that came meanwhile.
        states = [*self.rest["states"], [self.rest["states"][-1][0] + 1_000_000, at, status]]
        return RunRecord(record, {**self.rest, "endedAt": at, "states": states, "noted": [], "recorded": False})

    def waiting(self, at: float) -> RunRecord:
        """This run as it waits for a person without its host."""
        states = [*self.rest["states"], [self.rest["states"][-1][0] + 1_000_000, at, "blocked-on-user"]]
        record = {**self.record, "status": "blocked-on-user"}
        return RunRecord(record, {**self.rest, "states": states, "noted": []})

    def to_entry(self) -> Entry:
        return entry_of(self.id, encode(self.record), self.rest)
