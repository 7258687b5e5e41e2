"""Reads runs back, from any process, while their hosts are still working.

An acknowledged run may be in the host's journal for a moment before it is in the database. So both are read, the
journals first, to miss no run. While an older journal is being read, a newer one may be copied to the database and
deleted. So if a run has two records, the newer record counts, whether it comes from a journal or from the database.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from haft.contracts import AmbiguousRun, Event, RunId, StorageFailed, UnknownRun
from haft.files import shown
from haft.lazy import regex
from haft.runs.entry import RunRecord
from haft.runs.journal import journal_paths, read_journal
from haft.runs.kept_output import Frame, KeptReader, has_kept, kept_frames
from haft.storage import Filter, StateHome, open_stores
from haft.values import replace

SHORTEST_NAME = 4
MAX_NAMED = 6
"""How many runs the error names when a name is ambiguous."""
ALL: Final = 1 << 40
PAGE = 500
"""How many runs are in memory at once when very many are read."""
LEAST_SHOWN = 13
"""The length of the shortest beginning that is shown: `r_` and the eleven characters of a name that encode the time."""


_BARE: Final = regex(r"[0-9a-f]+")


class History:
    """The runs of a state home."""

    def __init__(self, home: StateHome) -> None:
        self._home = home
        self._connection = open_stores(home).connect()
        self._store = self._connection.runs

    def find(self, name: str) -> RunRecord:
        """One run, by its name or by a unique beginning of the name; `r_` may be left out."""
        if _BARE.fullmatch(name):
            name = f"r_{name}"
        found = {run.id: run for run in self._journal_runs() if run.id.startswith(name)}
        if len(name) >= SHORTEST_NAME:
            _merge(found, map(RunRecord.from_text, self._store.named(name, MAX_NAMED)))
        if name in found:
            return found[RunId(name)]
        if not found or len(name) < SHORTEST_NAME:
            raise UnknownRun(name)
        if len(found) > 1:
            raise AmbiguousRun(name, [_words(found[each]) for each in sorted(found, reverse=True)])
        return next(iter(found.values()))

    def shortest(self, names: Iterable[str]) -> dict[str, str]:
        """For each name of a run, its shortest unique beginning. This beginning contains at least the run's start time
        in milliseconds, so no run that starts at another time makes it ambiguous. Names without a run are left out."""
        in_journals = {run.id for run in self._journal_runs()}
        found = {}
        for name in names:
            near = {*in_journals, *self._store.neighbours(name)}
            if name in near:
                found[name] = next(
                    name[:length]
                    for length in range(LEAST_SHOWN, len(name) + 1)
                    if length == len(name) or not any(one.startswith(name[:length]) for one in near if one != name)
                )
        return found

    def runs(self, wanted: Filter) -> list[RunRecord]:
        """The runs that match the filter `wanted`, newest first."""
        latest = {run.id: run for run in self._journal_runs()}
        _merge(latest, (RunRecord.from_text(text) for name in [*latest] for text in self._store.named(name, 1)))
        found = {name: run for name, run in latest.items() if wanted.fits(run.record, run.rest)}
        # Read one more for each run that may be skipped below.
        for text in self._store.select(replace(wanted, limit=wanted.limit + len(latest))):
            run = RunRecord.from_text(text)
            if run.id not in latest:
                found[run.id] = run
        return [found[name] for name in sorted(found, reverse=True)[: wanted.limit]]

    def children_of(self, run: str) -> list[RunRecord]:
        """The runs that a run made directly, oldest first."""
        return self.runs(Filter(parent=run, limit=ALL))[::-1]

    def of_batch(self, batch: str) -> list[RunRecord]:
        """The runs of a batch, in the order of its calls. Raises `UnknownRun` if there is no such batch."""
        found = self.runs(Filter(batch=batch, limit=ALL))[::-1]
        if not found:
            raise UnknownRun(batch)
        return found

    def made_by(self, run: str) -> list[RunId]:
        """The runs that a run made, directly or through other runs."""
        latest = [(each.record["parent"], each.id) for each in self._journal_runs() if each.record["parent"]]
        found: dict[RunId, None] = {}
        above = [run]
        for one in above:
            kept = [RunRecord.from_text(text).id for text in self._store.select(Filter(parent=one, limit=ALL))]
            new = [each for each in (*kept, *(name for parent, name in latest if parent == one)) if each not in found]
            found.update(dict.fromkeys(new))
            above += new
        return sorted(found)

    def each(self, wanted: Filter) -> Iterator[RunRecord]:
        """The runs that match the filter `wanted`, newest first. They are read page by page, since there may be very
        many."""
        left, before = wanted.limit, wanted.before
        while left > 0:
            page = self.runs(replace(wanted, limit=min(left, PAGE), before=before))
            yield from page
            if len(page) < min(left, PAGE):
                return
            left, before = left - len(page), page[-1].id

    def events_beyond(self, run: RunRecord, after: int = -1) -> list[Event]:
        """The events with a number above `after`, in their order: statuses, progress and others, without the output."""
        happened = {event.seq: event for event in run.states()}
        noted = [event for entry in self._journal_runs() if entry.id == run.id for event in entry.noted()]
        # A noted event of a status has more facts than the status alone.
        happened.update({event.seq: event for event in (*noted, *self._store.events_of(run.id, after))})
        return [happened[seq] for seq in sorted(happened) if seq > after]

    def reader(self, run: RunRecord) -> KeptReader:
        """A reader for the run's output, also while it grows."""
        return KeptReader(self._home.outputs, run.id)

    def output(self, run: RunRecord, first_line: int = 1) -> Iterator[Frame]:
        """The whole stored output; pieces that end before `first_line` may be left out."""
        if has_kept(self._home.outputs, run.id):
            yield from kept_frames(self._home.outputs, run.id, first_line)
        elif run.rest["output"]:
            data = run.rest["output"].encode("utf-8", "surrogateescape")
            yield Frame(0, run.ended_at or run.started_at, "stdout", data)

    def request_cancel(self, run: RunId, who: str) -> None:
        """Ask the run's host to cancel the run. The host checks for requests several times a second."""
        self._store.request_cancel(run, who, time.time())

    def _journal_runs(self) -> Iterator[RunRecord]:
        for path in journal_paths(self._home.hosts):
            try:
                yield from (RunRecord.from_text(entry.line) for entry in read_journal(path))
            except OSError as error:
                raise StorageFailed(f"{path} cannot be read", error) from error

    def close(self) -> None:
        self._connection.close()


def _words(run: RunRecord) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started_at))
    return f"{run.id} ({shown(run.tool)}, {when})"


def _merge(found: dict[RunId, RunRecord], kept: Iterable[RunRecord]) -> None:
    """Add the runs in the database (`kept`) to those in the journals (`found`). If both have a run, the newer record
    counts; but if the run has ended according to the database, it stays ended."""
    for run in kept:
        if run.id not in found or not run.is_open or run.last_seq > found[run.id].last_seq:
            found[run.id] = run
