"""Reading runs back, from any process, while their hosts are still at work.

What a host acknowledged may lie in its journal for a moment before the database has it: both are read, the journals
first, so that nothing falls between. A journal may be gone when an older one has just been read: of two records of a
run the later counts, wherever it lies.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from haft.contracts import AmbiguousRun, Event, RunId, StorageFailed, UnknownRun
from haft.files import shown
from haft.lazy import regex
from haft.runs.entry import RunRecord
from haft.runs.journal import journal_paths, journalled
from haft.runs.kept import Frame, KeptReader, has_kept, kept_frames
from haft.storage import Filter, StateHome, open_stores
from haft.values import replace

SHORTEST_NAME = 4
MOST_NAMED = 6
"""Runs that are named to whoever has to choose."""
ALL: Final = 1 << 40
PAGE = 500
"""Runs that are in memory at once while very many are looked through."""
LEAST_SHOWN = 13
"""`r_` and the eleven characters of a name that are its time."""


_BARE: Final = regex(r"[0-9a-f]+")


class History:
    """The runs of a state home."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._connection = open_stores(home).connect()
        self._store = self._connection.runs

    def find(self, name: str) -> RunRecord:
        """One run, by its name or the beginning of it that only one has; `r_` may be left out."""
        if _BARE.fullmatch(name):
            name = f"r_{name}"
        found = {run.id: run for run in self._journalled() if run.id.startswith(name)}
        if len(name) >= SHORTEST_NAME:
            _merge(found, map(RunRecord.from_text, self._store.named(name, MOST_NAMED)))
        if name in found:
            return found[RunId(name)]
        if not found or len(name) < SHORTEST_NAME:
            raise UnknownRun(name)
        if len(found) > 1:
            raise AmbiguousRun(name, [_words(found[each]) for each in sorted(found, reverse=True)])
        return next(iter(found.values()))

    def shortest(self, names: Iterable[str]) -> dict[str, str]:
        """For each name of a run, the beginning that no other run has, and that none will have which begins in another
        millisecond. Names of no run are left out."""
        journalled = {run.id for run in self._journalled()}
        found = {}
        for name in names:
            near = {*journalled, *self._store.neighbours(name)}
            if name in near:
                found[name] = next(
                    name[:length]
                    for length in range(LEAST_SHOWN, len(name) + 1)
                    if length == len(name) or not any(one.startswith(name[:length]) for one in near if one != name)
                )
        return found

    def runs(self, wanted: Filter) -> list[RunRecord]:
        """The runs that fit, newest first."""
        latest = {run.id: run for run in self._journalled()}
        _merge(latest, (RunRecord.from_text(text) for name in [*latest] for text in self._store.named(name, 1)))
        found = {name: run for name, run in latest.items() if wanted.fits(run.record, run.rest)}
        # One more for each that may be passed over below.
        for text in self._store.select(replace(wanted, limit=wanted.limit + len(latest))):
            run = RunRecord.from_text(text)
            if run.id not in latest:
                found[run.id] = run
        return [found[name] for name in sorted(found, reverse=True)[: wanted.limit]]

    def children_of(self, run: str) -> list[RunRecord]:
        """The runs that a run made itself, in their order."""
        return self.runs(Filter(parent=run, limit=ALL))[::-1]

    def made_by(self, run: str) -> list[RunId]:
        """The runs that a run made, and those that they made, by calls inside calls."""
        latest = [(each.record["parent"], each.id) for each in self._journalled() if each.record["parent"]]
        found: dict[RunId, None] = {}
        above = [run]
        for one in above:
            kept = [RunRecord.from_text(text).id for text in self._store.select(Filter(parent=one, limit=ALL))]
            new = [each for each in (*kept, *(name for parent, name in latest if parent == one)) if each not in found]
            found.update(dict.fromkeys(new))
            above += new
        return sorted(found)

    def each(self, wanted: Filter) -> Iterator[RunRecord]:
        """The same, a few at a time: there may be very many."""
        left, before = wanted.limit, wanted.before
        while left > 0:
            page = self.runs(replace(wanted, limit=min(left, PAGE), before=before))
            yield from page
            if len(page) < min(left, PAGE):
                return
            left, before = left - len(page), page[-1].id

    def happenings(self, run: RunRecord, after: int = -1) -> list[Event]:
        """Statuses, progress and the like beyond a number, in the order they happened; not the output."""
        happened = {event.seq: event for event in run.states()}
        noted = [event for journalled in self._journalled() if journalled.id == run.id for event in journalled.noted()]
        # What was noted of a status says more than the status alone.
        happened.update({event.seq: event for event in (*noted, *self._store.events_of(run.id, after))})
        return [happened[seq] for seq in sorted(happened) if seq > after]

    def reader(self, run: RunRecord) -> KeptReader:
        """The run's output, to be read as it grows."""
        return KeptReader(self._home.outputs, run.id)

    def output(self, run: RunRecord, first_line: int = 1) -> Iterator[Frame]:
        """The whole output, as kept; what ends before a line may be left out."""
        if has_kept(self._home.outputs, run.id):
            yield from kept_frames(self._home.outputs, run.id, first_line)
        elif run.rest["output"]:
            data = run.rest["output"].encode("utf-8", "surrogateescape")
            yield Frame(0, run.ended_at or run.started_at, "stdout", data)

    def request_cancel(self, run: RunId, who: str) -> None:
        """Ask the run's host to cancel it. The host looks several times a second."""
        self._store.request_cancel(run, who, time.time())

    def _journalled(self) -> Iterator[RunRecord]:
        for path in journal_paths(self._home.hosts):
            try:
                yield from (RunRecord.from_text(entry.line) for entry in journalled(path))
            except OSError as error:
                raise StorageFailed(f"{path} cannot be read", error) from error

    def close(self) -> None:
        self._connection.close()


def _words(run: RunRecord) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started_at))
    return f"{run.id} ({shown(run.tool)}, {when})"


def _merge(found: dict[RunId, RunRecord], kept: Iterable[RunRecord]) -> None:
    """Add what the table has, where it is ahead of the journals: a run that has ended there stays ended."""
    for run in kept:
        if run.id not in found or not run.is_open or run.last_seq > found[run.id].last_seq:
            found[run.id] = run
