"""The port (storage interface) of runs: each run is one document, written as a whole each time, with its events and its
cancel requests.

A document is `{"record": …, "rest": …}`, one line of JSON; `runs/entry.py` describes its fields. The port needs
`run`, `tool`, `status`, `who`, `thread`, `parent`, `workspace`, `changes.files` and `sandbox.connections` of the
record, and `host`, `startedAt`, `endedAt` and `noted` (events) of the rest. Records of earlier versions have no
`sandbox.connections`, only the runs of a batch have `batch`, and only calls with a key have `key` in the rest.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from haft.contracts import Event, HostId, RunId
from haft.storage.encoding import encode
from haft.values import dataclass

_SMALL = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


def small_letters(text: str) -> str:
    """The text with small letters of ASCII, as the database compares texts."""
    return text.translate(_SMALL)


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects runs. Every field that is set must match."""

    tool: str | None = None
    status: str | None = None
    who: str | None = None
    thread: str | None = None
    parent: str | None = None
    workspace: str | None = None
    batch: str | None = None
    """Only the runs of this batch, without those that these made."""
    key: str | None = None
    """Only runs whose callers gave them this key."""
    path: str | None = None
    host: str | None = None
    """Only runs that connected, or tried to connect, to this host; `*.example.org` means all names below it."""
    since: float | None = None
    until: float | None = None
    """Only runs that began before this time."""
    longer_than: float | None = None
    """Only runs that took more seconds than this; of a run that has not ended, the time so far counts."""
    text: str | None = None
    """Only runs with this text in their arguments, or in the part of their output that is kept with the run. Capital
    and small letters of ASCII are the same."""
    is_open: bool | None = None
    """Only runs that have not ended, or only those that have."""
    limit: int = 50
    before: str | None = None
    """Only runs whose name comes before this one; used for the next page."""

    def exact(self) -> list[tuple[str, str]]:
        """The name and value of each field that is set and must be equal in a run's record."""
        names = ("tool", "status", "who", "thread", "parent", "workspace", "batch")
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]

    def fits(self, record: Mapping[str, Any], rest: Mapping[str, Any]) -> bool:
        return (
            all(record.get(name) == value for name, value in self.exact())
            and self.key in (None, rest.get("key"))
            and (self.since is None or rest["startedAt"] >= self.since)
            and (self.until is None or rest["startedAt"] < self.until)
            and (self.longer_than is None or (rest["endedAt"] or time.time()) - rest["startedAt"] > self.longer_than)
            and (self.text is None or self._has_text(record, rest))
            and (self.before is None or record["run"] < self.before)
            and (self.path is None or any(change["path"] == self.path for change in record["changes"]["files"]))
            and (self.host is None or any(map(self._is_host, record.get("sandbox", {}).get("connections", ()))))
            and self.is_open in (None, rest["endedAt"] is None)
        )

    def _has_text(self, record: Mapping[str, Any], rest: Mapping[str, Any]) -> bool:
        places = (encode(record["arguments"]).decode(), rest["output"])
        texts = (self.text_in_json, self.text or "")
        return any(small_letters(text) in small_letters(place) for text, place in zip(texts, places, strict=True))

    @property
    def text_in_json(self) -> str:
        """`text` as it stands in JSON."""
        return encode(self.text).decode()[1:-1]

    def _is_host(self, connection: Mapping[str, Any]) -> bool:
        host: str = connection["host"]
        below = self.hosts_below
        return host == self.host if below is None else host.endswith(below)

    @property
    def hosts_below(self) -> str | None:
        """The end of all names that `host` means, such as `.example.org`; None if `host` means one name."""
        return self.host[1:] if self.host is not None and self.host.startswith("*.") else None


class RunStore(Protocol):
    """The runs of a state home. Any thread of the process may use this object."""

    def put(self, documents: Sequence[bytes]) -> None:
        """Write runs, all or none. A run that has ended stays ended, even if an older document of the run is written
        again afterwards. Events are added to the existing ones."""
        ...

    def sync(self) -> None:
        """Make all written runs survive power loss."""
        ...

    def select(self, wanted: Filter) -> list[str]:
        """The documents of the runs that match `wanted`, newest first."""
        ...

    def named(self, prefix: str, limit: int) -> list[str]:
        """The newest documents of runs whose name begins with `prefix`."""
        ...

    def neighbours(self, name: str) -> list[str]:
        """The given name, if a run has it, and the names before and after it in the order of names."""
        ...

    def open_runs(self, host: HostId) -> list[str]:
        """The documents of a host's runs that have not ended."""
        ...

    def added(self, after: int, but: Collection[HostId], also: Collection[RunId]) -> tuple[int, list[str]]:
        """The documents of the runs that were first written after the run with the number `after`, in this order,
        without those of the hosts `but`; and the documents of the runs `also`. The runs are numbered as they are first
        written; the result begins with the number of the newest."""
        ...

    def take_over(self, runs: Sequence[RunId], of: HostId, to: HostId) -> bool:
        """Make runs of the host `of` that have not ended runs of the host `to`, all or none. Returns False if one of
        them has ended, or belongs to another host by now. If several processes try it, only one succeeds."""
        ...

    def events_of(self, run: RunId, after: int = -1) -> list[Event]:
        """The events of a run with a number above `after`, in their order."""
        ...

    def ended_before(self, at: float, workspace: str | None, but: Collection[str]) -> list[RunId]:
        """The runs that ended before a time, the oldest first: of one workspace, or of all but some."""
        ...

    def remove(self, runs: Sequence[RunId]) -> None:
        """Remove runs, with their events, all or none."""
        ...

    def request_cancel(self, run: RunId, who: str, at: float) -> None:
        """Store a cancel request for the run's host. If there are several requests for one run, the last one counts."""
        ...

    def take_cancels(self, runs: Collection[RunId]) -> list[tuple[RunId, str]]:
        """Return the cancel requests for these runs, each as the run and the user who made the request. Each request is
        returned only once."""
        ...
