"""The events of one run, for a reader that may have some of them already: page by page, in their order, each once.

A reader gets the same events with the same numbers whether the run is live in this host, in another one, or has ended.
Output always comes from the files in which it is kept, so that all readers get it in the same pieces. `page` reads what
there is, in a worker thread. A reader that has caught up with a live run of this host can `attach` itself: then `heard`
returns what is new at once, and does not ask the disk whether anything is.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from haft.contracts import TERMINAL, Event, RunId, Stream, UnknownRun
from haft.runs import Frame, History, KeptReader, RunRecord

if TYPE_CHECKING:
    from haft.pipeline import Run
    from haft.service.assembly import Host

PAGE_BYTES: Final = 32_000
"""How much text a page holds, unless a single event has more."""
SETTLED_SECONDS: Final = 1.0
"""Another host writes its output at once, and its other events a moment later. After this time, no event comes before
the output any more."""


class RunEvents:
    """The events of one run after the number `after`. A run that is unknown raises `UnknownRun` when it is read."""

    def __init__(self, host: Host, run: RunId, after: int = -1) -> None:
        self.run: Final = run
        self.last = after
        """The number of the last event that was read."""
        self.has_ended = False
        """Whether the outcome was read, so that nothing follows."""
        self.has_more = False
        """Whether the page that was read last was full."""
        self._host = host
        self._output: _Output | None = None
        self._attached: Run | None = None
        self._heard: list[Event] = []

    async def page(self) -> list[Event]:
        """The next events; an empty list if there are none yet, or if the run has ended."""
        if self.has_ended:
            return []
        live = self._live()
        known = None if live is None else _Known.of(live)
        return await self._host.with_history(lambda history: self._read(history, known))

    def attach(self) -> bool:
        """Hear of the run's events from now on. Returns False if the run is not live in this host. What came before
        must still be read with `page`, until `last` has the number that `latest` had then."""
        if self._attached is None:
            self._attached = self._live()
            if self._attached is None:
                return False
            self._attached.observe(self)
        return True

    def detach(self) -> None:
        """Stop hearing of events."""
        if self._attached is not None:
            self._attached.forget(self)
            self._attached = None

    @property
    def latest(self) -> int | None:
        """The number of the newest event of the live run to which this reader is attached."""
        return None if self._attached is None else self._attached.last_seq

    def heard(self) -> list[Event]:
        """The next events of the run to which this reader is attached. Does not wait for the disk: output that was just
        written is in memory."""
        assert self._attached is not None
        cap = self._attached.last_seq
        if self.has_ended or self.last >= cap + (self._attached.outcome is not None):
            return []
        happened = [event for event in self._heard if event.seq > self.last]
        page, _ = self._merged(happened, self._reader(None), cap + 1)
        self._heard = [event for event in happened if event.seq > self.last]
        self.has_ended = bool(page) and page[-1].type == "outcome"
        return page

    # As an observer of the run.

    def put(self, event: Event) -> None:
        """Note an event of the attached run. Its output is read from its file. An outcome that is none comes if the run
        is left open for another host."""
        if event.type not in ("stdout", "stderr") and (event.type != "outcome" or event.status in TERMINAL):
            self._heard.append(event)

    def end(self) -> None:
        """Called when the attached run has ended."""

    def _live(self) -> Run | None:
        pipeline = self._host.pipeline
        return None if pipeline is None else pipeline.live.get(self.run)

    def _read(self, history: History, known: _Known | None) -> list[Event]:
        record = self._record(history, known is not None)
        happened = {} if known is None else {event.seq: event for event in known.states}
        if record is not None:
            happened.update({event.seq: event for event in history.events_beyond(record, after=self.last)})
        if known is not None:
            happened.update({event.seq: event for event in known.unsaved})
        after = [happened[seq] for seq in sorted(happened) if seq > self.last]
        is_elsewhere = known is None and record is not None and record.is_open
        cap = None if known is None else known.last_seq
        output = self._reader(None if record is None else history.reader(record))
        page, is_all = self._merged(after, output, cap, is_elsewhere=is_elsewhere)
        if is_all and record is not None and not record.is_open and known is None:
            self.has_ended = True
            outcome = record.outcome_event(record.last_seq + 1)
            if outcome.seq > self.last:
                self.last = outcome.seq
                page.append(outcome)
        return page

    def _record(self, history: History, is_live: bool) -> RunRecord | None:
        """The stored run; None if it is live, and nothing of it is stored yet."""
        try:
            return history.find(self.run)
        except UnknownRun:
            if is_live:
                return None
            raise

    def _reader(self, reader: KeptReader | None) -> _Output:
        if self._output is None:
            self._output = _Output(self.run, reader or KeptReader(self._host.home.outputs, self.run))
        return self._output

    def _merged(
        self, happened: Sequence[Event], output: _Output, cap: int | None, *, is_elsewhere: bool = False
    ) -> tuple[list[Event], bool]:
        """A page of the events that `happened` and of the output, up to the number `cap`, and whether these are all
        that there are now."""
        page: list[Event] = []
        self.has_more = False
        size, now = 0, time.time()
        waiting = iter(happened)
        event = next(waiting, None)
        while size < PAGE_BYTES:
            piece = output.peek(self.last)
            is_piece = piece is not None and (event is None or piece.seq < event.seq)
            chosen = piece if is_piece else event
            if chosen is None or (cap is not None and chosen.seq > cap):
                return page, True
            if is_elsewhere and chosen.seq > self.last + 1 and chosen.at > now - SETTLED_SECONDS:
                return page, True  # What is missing before it may still come.
            self.last = chosen.seq
            if is_piece:
                output.take()
            else:
                event = next(waiting, None)
            if chosen.type not in ("stdout", "stderr") or chosen.text:
                page.append(chosen)
                size += len(chosen.text) + 200
        self.has_more = True
        return page, False


class _Known(NamedTuple):
    """What the host knows of a live run that may not be on disk yet."""

    states: list[Event]
    unsaved: list[Event]
    last_seq: int

    @classmethod
    def of(cls, run: Run) -> _Known:
        states = [Event(run.id, seq, at, "status", status) for seq, at, status in run.states]
        return cls(states, list(run.unsaved_events), run.last_seq)


class _Output:
    """The output of a run as events: one for each number, even if its bytes are stored in several frames."""

    def __init__(self, run: RunId, reader: KeptReader) -> None:
        self._run = run
        self._reader = reader
        self._frames: Iterator[Frame] = iter(())
        self._next: Frame | None = None
        self._piece: Event | None = None
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {}

    def peek(self, after: int) -> Event | None:
        """The next piece with a number above `after`; None if there is none yet."""
        while self._piece is None or self._piece.seq <= after:
            frame = self._frame()
            if frame is None:
                self._piece = None
                return None
            data, self._next = [frame.data], None
            while (more := self._frame()) is not None and (more.seq, more.stream) == (frame.seq, frame.stream):
                data.append(more.data)
                self._next = None
            self._piece = self._event(frame, b"".join(data))
        return self._piece

    def take(self) -> None:
        """Pass over the piece that `peek` returned."""
        self._piece = None

    def _frame(self) -> Frame | None:
        if self._next is None:
            self._next = next(self._frames, None)
            if self._next is None:
                self._frames = self._reader.frames()
                self._next = next(self._frames, None)
        return self._next

    def _event(self, frame: Frame, data: bytes) -> Event:
        decoder = self._decoders.get(frame.stream)
        if decoder is None:
            decoder = self._decoders[frame.stream] = codecs.getincrementaldecoder("utf-8")("replace")
        facts: dict[str, object] = {"text": decoder.decode(data)}
        if frame.skipped:
            facts["skipped"] = frame.skipped
        return Event(self._run, frame.seq, frame.at, frame.stream, "in-progress", facts)
