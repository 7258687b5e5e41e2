"""Following a run from another process: the same events with the same numbers as an observer inside its host sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from haft.contracts import Event, RunId
from haft.runs.history import History

PAUSE_SECONDS = 0.1


def follow(history: History, run: RunId, pause: Callable[[], None] | None = None) -> Iterator[Event]:
    """Everything that happened so far, then what happens, until the outcome. Blocks between events; `pause` is called
    each time there is nothing new."""
    last = -1
    while True:
        # Asked before the events are read: what was over then has no further ones.
        record = history.find(run)
        for event in history.events(run, after=last):
            last = event.seq
            yield event
        if not record.is_open:
            yield record.outcome_event(last + 1)
            return
        if pause is not None:
            pause()
        time.sleep(PAUSE_SECONDS)
