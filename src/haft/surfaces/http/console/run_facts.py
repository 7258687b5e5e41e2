"""A run as the pages show it, made of its JSON form: what ran, how it is, who called it, what it changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final, Literal

from haft.surfaces.http.console.call_words import short_id, subject
from haft.values import dataclass

Kind = Literal[
    "waiting", "queued", "running", "done", "changed", "held", "read", "error", "rejected", "cancelled", "undone"
]
"""How a run looks. `read`: it is done, and can change nothing. `done`: it could change files, and did not."""

_OPEN: Final[Mapping[str, Kind]] = {
    "queued": "queued",
    "blocked-on-user": "waiting",
    "in-progress": "running",
    "cancellation-requested": "running",
}
_ENDED: Final[Mapping[str, Kind]] = {"error": "error", "rejected-by-user": "rejected", "cancelled": "cancelled"}
WORDS: Final[Mapping[Kind, tuple[str, str, str]]] = {
    "waiting": ("waits", "wait", "wait"),
    "queued": ("queued", "queued", ""),
    "running": ("running", "run", "running"),
    "done": ("done", "done", "done"),
    "changed": ("done", "done", "done"),
    "held": ("held", "held", ""),
    "read": ("done", "done", "done"),
    "error": ("error", "error", "error"),
    "rejected": ("rejected", "rejected", ""),
    "cancelled": ("cancelled", "cancelled", ""),
    "undone": ("undone", "undone", ""),
}
"""For each kind: the word, the picture, and the style of its state."""
SAID: Final[Mapping[Kind, str]] = {
    "waiting": "waits for you",
    "queued": "queued",
    "running": "running",
    "done": "done, changed nothing",
    "changed": "done, changed files",
    "held": "done, its changes are held",
    "read": "done, only read",
    "error": "error",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "undone": "undone",
}
"""For each kind: how it ended, in a sentence for screen readers."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run."""

    id: str
    tool: str
    subject: str
    kind: Kind
    status: str
    who: str
    thread: str
    parent: str | None
    began: float
    ended: float | None
    waited: tuple[float, float] | None
    """From when until when it waited for a person; the end is 0 while it waits."""
    paths: tuple[str, ...]
    changes: Mapping[str, Any]
    whole: Mapping[str, Any]
    """The JSON form."""

    @property
    def thread_name(self) -> str:
        return short_id(self.thread)

    @property
    def short(self) -> str:
        return short_id(self.id)

    @property
    def word(self) -> str:
        return "cancelling" if self.status == "cancellation-requested" else WORDS[self.kind][0]

    @property
    def picture(self) -> str:
        return WORDS[self.kind][1]

    @property
    def style(self) -> str:
        return WORDS[self.kind][2]

    @property
    def is_open(self) -> bool:
        return self.ended is None

    @property
    def started_work(self) -> float:
        """When it began to run: after a person answered, if one was asked."""
        return self.waited[1] if self.waited and self.waited[1] else self.began

    def lasted(self, now: float) -> float:
        """How many seconds it took, or has taken so far."""
        return max(0.0, (self.ended or now) - self.began)

    def sentence(self, now: float, clock: Any, took: Any) -> str:
        """The run in one sentence, as the name of a link."""
        lasts = f"for {took(self.lasted(now))}" if self.is_open else f"took {took(self.lasted(now))}"
        return f"{self.tool} {self.subject}: {SAID[self.kind]}, began {clock(self.began)}, {lasts}"


def run_facts(run: Mapping[str, Any]) -> RunFacts:
    """The facts of a run, from its JSON form."""
    changes = run["outcome"]["changes"]
    ended = None if run["endedAt"] is None else seconds_of(run["endedAt"])
    return RunFacts(
        id=run["id"],
        tool=run["tool"],
        subject=subject(run["tool"], run["arguments"]),
        kind=_kind(run["status"], changes),
        status=run["status"],
        who=run["who"],
        thread=run["thread"],
        parent=run["parent"],
        began=seconds_of(run["startedAt"]),
        ended=ended,
        waited=_waited(run["states"], ended),
        paths=tuple(each["path"] for each in changes["files"]),
        changes=changes,
        whole=run,
    )


def seconds_of(iso: str) -> float:
    """A time of the JSON form as seconds since the epoch."""
    return datetime.datetime.fromisoformat(iso).timestamp()


def _kind(status: str, changes: Mapping[str, Any]) -> Kind:
    if status in _OPEN:
        return _OPEN[status]
    if changes["state"] == "undone":
        return "undone"
    if changes["state"] == "held":
        return "held"
    if status in _ENDED:
        return _ENDED[status]
    if changes["state"] == "committed" and changes["files"]:
        return "changed"
    return "read" if changes["engine"] == "none" and changes["complete"] else "done"


def _waited(states: list[Mapping[str, Any]], ended: float | None) -> tuple[float, float] | None:
    """The last time that the run waited for a person."""
    for number in range(len(states) - 1, -1, -1):
        if states[number]["status"] == "blocked-on-user":
            until = seconds_of(states[number + 1]["at"]) if number + 1 < len(states) else ended or 0.0
            return seconds_of(states[number]["at"]), until
    return None
