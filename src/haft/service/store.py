"""The store: contents of changed files, kept outputs, conversations of tasks, and the `/tmp` of threads. Measures it,
and prunes it to its limits.

Commands use `StoreFacade` directly, and `housekeeping` uses it in the background of a host.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from haft.changes import Bounds, PruneResult, Store, Usage
from haft.runs import Outputs, outputs_in, remove_outputs
from haft.sandbox import IDLE_SECONDS, Removed, remove_scratch, scratch_in, scratch_root
from haft.service.retention import Retention, remove_old_runs
from haft.storage import AnswerFiles, ConversationFiles, StateHome, open_stores

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Tidied:
    """What pruning removed, or would remove."""

    pruned: PruneResult
    outputs: Outputs
    scratch: Removed
    """What was removed from the `/tmp` of threads."""
    old_runs: int = 0
    """How many runs were removed because they are older than `[retention]` says."""

    def to_json(self) -> dict[str, Any]:
        return {
            **self.pruned.to_json(),
            "outputs": dataclasses.asdict(self.outputs),
            "scratch": dataclasses.asdict(self.scratch),
            "oldRuns": self.old_runs,
        }


class StoreFacade:
    """The store of a state home."""

    def __init__(self, home: StateHome, bounds: Bounds, retention: Retention | None = None) -> None:
        """Without `retention`, runs are kept for ever."""
        self._home = home
        self._retention = retention or Retention()
        self._bounds = bounds
        self._scratch = scratch_root(home.path)
        self._store = Store(home.changes, open_stores(home), home.blobs, self._bounds)

    def close(self) -> None:
        self._store.close()

    def measure(self) -> Usage:
        """The disk space that the store uses, and a list of the change sets that are held."""
        usage = self._store.measure(self._outputs)
        usage.scratch = scratch_in(self._scratch).bytes
        return usage

    def _outputs(self) -> tuple[int, int]:
        found = outputs_in(self._home.outputs)
        return found.files, found.bytes

    def prune(self, *, dry_run: bool = False) -> Tidied:
        """Compress the store, and remove what is over the size limit or too old. With `dry_run`, remove nothing and
        return what would be removed at most."""
        if dry_run:
            idle = scratch_in(self._scratch, self._idle_since())
            old = remove_old_runs(self._home, self._retention, dry_run=True)
            return Tidied(self._store.preview(), outputs_in(self._home.outputs, self._oldest()), idle, old)
        return self._tidied(self._store.prune())

    def tidy(self, stopped: Callable[[], bool]) -> Tidied:
        """Prune in the background of a host: calls have priority, and nothing is pruned while the store is within its
        limits. Ends early if `stopped` returns True."""
        done = self._tidied(self._store.prune(thorough=False, patience=1.0, stopped=stopped))
        if not stopped():
            self.measure()  # Caches the size of a large store, so that no command has to wait for it.
        return done

    def _tidied(self, done: PruneResult) -> Tidied:
        AnswerFiles(self._home.answers, sys.maxsize, sys.maxsize, DAY).prune()
        ConversationFiles(self._home.conversations).remove_before(self._oldest())
        outputs = remove_outputs(self._home.outputs, self._oldest())
        old = remove_old_runs(self._home, self._retention)  # After pruning: what can no longer be undone may go.
        return Tidied(done, outputs, remove_scratch(self._scratch, self._idle_since()), old)

    @staticmethod
    def _idle_since() -> float:
        return time.time() - IDLE_SECONDS

    def _oldest(self) -> float:
        return time.time() - self._bounds.days * DAY
