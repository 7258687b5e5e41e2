"""Several watchers of runs as one. A watcher that fails never fails a call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from haft.contracts import Outcome
from haft.pipeline import Run, RunWatcher

_log = logging.getLogger("haft")


class Watchers:
    """Tells each of several watchers about runs. One that raises an exception is told nothing more."""

    def __init__(self, watchers: Iterable[RunWatcher]) -> None:
        self._watchers = list(watchers)

    def began(self, run: Run) -> None:
        self._tell(lambda watcher: watcher.began(run))

    def began_task(self, run: Run) -> None:
        self._tell(lambda watcher: watcher.began_task(run))

    def ended(self, run: Run, outcome: Outcome) -> None:
        self._tell(lambda watcher: watcher.ended(run, outcome))

    def _tell(self, what: Callable[[RunWatcher], None]) -> None:
        for watcher in tuple(self._watchers):
            try:
                what(watcher)
            except Exception:
                self._watchers.remove(watcher)
                _log.exception("telemetry failed, and is off from now on; calls go on")
