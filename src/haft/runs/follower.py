"""Follows a run from another process: yields the same events, with the same numbers, as an observer in the run's host
gets.

Following needs little memory, however much the run writes. While the run goes on, nothing is read twice.
"""

from __future__ import annotations

import codecs
import heapq
import time
from collections.abc import Callable, Iterator

from haft.contracts import Event, RunId
from haft.runs.history import History
from haft.runs.kept_output import Frame, KeptReader

PAUSE_SECONDS = 0.1


def follow(history: History, run: RunId, pause: Callable[[], None] | None = None) -> Iterator[Event]:
    """Yield all events so far, then new ones, until the outcome. Blocks between events; `pause` is called each time
    when there is nothing new."""
    output: _Output | None = None
    last = seen = -1
    while True:
        # Read the status before the output: if the run has ended by then, no more output follows.
        record = history.find(run)
        output = output or _Output(record.id, history.reader(record))
        happened = history.events_beyond(record, after=seen)
        seen = happened[-1].seq if happened else seen
        for event in heapq.merge(happened, output.events(), key=lambda event: event.seq):
            last = max(last, event.seq)
            yield event
        if not record.is_open:
            yield record.outcome_event(last + 1)
            return
        if pause is not None:
            pause()
        time.sleep(PAUSE_SECONDS)


class _Output:
    """The output of a run as events; a character that is split between two pieces is put together."""

    def __init__(self, run: RunId, reader: KeptReader) -> None:
        self._run = run
        self._reader = reader
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def events(self) -> Iterator[Event]:
        """The events that came after this method was last called."""
        return map(self._event, self._reader.frames())

    def _event(self, frame: Frame) -> Event:
        decoder = self._decoders.get(frame.stream)
        if decoder is None:
            decoder = self._decoders[frame.stream] = codecs.getincrementaldecoder("utf-8")("replace")
        facts: dict[str, object] = {"text": decoder.decode(frame.data)}
        if frame.skipped:
            facts["skipped"] = frame.skipped
        return Event(self._run, frame.seq, frame.at, frame.stream, "in-progress", facts)
