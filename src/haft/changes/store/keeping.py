"""The store of all that calls replaced: how much there is, packing it up, and pruning it to a budget and an age.

Above it stand the service and the command line; below are `measuring` and `tidying`, which is one pass. There is one
pass at a time in a state home; calls go on meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from haft.changes.committing.area import known_areas
from haft.changes.store.alone import Busy, one_at_a_time
from haft.changes.store.blobs import Blobs
from haft.changes.store.bounds import LOCK, Bounds
from haft.changes.store.measuring import Usage, held_in, use_of
from haft.changes.store.tidying import Pass, Pruned
from haft.contracts import MachineError
from haft.storage import Stores

__all__ = ["Pruned", "Store"]


class Store:
    """What is kept in a state home. `home` is its directory for all workspaces."""

    def __init__(self, home: str, stores: Stores, blobs: str, bounds: Bounds) -> None:
        self._home = home
        self._ledger = stores.connect().ledger
        self._blobs = Blobs(blobs)
        self._bounds = bounds

    def close(self) -> None:
        self._ledger.close()

    def measure(self) -> Usage:
        """How much of the disk it takes."""
        areas, rows = known_areas(self._home), self._ledger.all()
        count, contents = self._blobs.used()
        return Usage(
            self._bounds.bytes,
            self._bounds.days,
            [use_of(area, [row for row in rows if row.area == area.path]) for area in areas],
            held_in(areas, rows),
            count,
            contents,
        )

    def preview(self) -> Pruned:
        """What a pass would do at most: packing may make more room than can be told before."""
        return self._pass(0.0, lambda: False).preview()

    def prune(
        self,
        *,
        thorough: bool = True,
        patience: float = 10.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Pruned:
        """A whole pass: pack, then prune. `patience` is how many seconds it waits for a workspace that is at work."""
        try:
            with one_at_a_time(os.path.join(self._home, LOCK), patience, stopped) as mark:
                done = self._pass(patience, stopped)
                # Said at once: a pass that is cut short every time must not be begun every time.
                words = b"%d" % done.seen
                os.pwrite(mark, words, 0)
                os.ftruncate(mark, len(words))
                os.utime(mark)
                return done.run(thorough=thorough)
        except Busy:
            raise MachineError("the store is being tidied up by another process", hint="try again later") from None

    def _pass(self, patience: float, stopped: Callable[[], bool]) -> Pass:
        return Pass(self._home, self._ledger, self._blobs, self._bounds, patience, stopped)
