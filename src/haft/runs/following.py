"""Following a run from another process: the same events with the same numbers as an observer inside its host sees.

Memory stays small whatever the run has written, and nothing is read twice while it goes on.
"""

from __future__ import annotations

import codecs
import heapq
import time
from collections.abc import Callable, Iterator

from haft.contracts import Event, RunId
from haft.runs.history import History
from haft.runs.kept import Frame, KeptReader

PAUSE_SECONDS = 0.1


def follow(history: History, run: RunId, pause: Callable[[], None] | None = None) -> Iterator[Event]:
    """Everything that happened so far, then what happens, until the outcome. Blocks between events; `pause` is called
    each time there is nothing new."""
    output: _Output | None = None
    last = seen = -1
    while True:
        # Asked before anything is read: what was over then has nothing further.
        record = history.find(run)
        output = output or _Output(record.id, history.reader(record))
        happened = history.happenings(record, after=seen)
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
    """The output of a run as events, characters cut by the edge of a piece put together again."""

    def __init__(self, run: RunId, reader: KeptReader) -> None:
        self._run = run
        self._reader = reader
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def events(self) -> Iterator[Event]:
        """What has come since last time."""
        return map(self._event, self._reader.frames())

    def _event(self, frame: Frame) -> Event:
        decoder = self._decoders.get(frame.stream)
        if decoder is None:
            decoder = self._decoders[frame.stream] = codecs.getincrementaldecoder("utf-8")("replace")
        facts: dict[str, object] = {"text": decoder.decode(frame.data)}
        if frame.skipped:
            facts["skipped"] = frame.skipped
        return Event(self._run, frame.seq, frame.at, frame.stream, "in-progress", facts)
