"""The store of all that calls replaced: how much there is, packing it up, and pruning it to a budget and an age.

Above it stand the service and the command line; below are `measuring` and `tidying`, which is one pass. There is one
pass at a time in a state home; calls go on meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from haft.changes.commit.area import Area, known_areas
from haft.changes.store import measurement_cache
from haft.changes.store.blobs import Blobs
from haft.changes.store.bounds import LOCK, Bounds
from haft.changes.store.maintenance import MaintenancePass, PruneResult
from haft.changes.store.measurement_cache import Measurement, load
from haft.changes.store.usage import Usage, held_in, kept_of, names_in, use_of
from haft.changes.store.workspace_locks import Busy, lock_file
from haft.contracts import MachineError
from haft.storage import Stores

__all__ = ["PruneResult", "Store"]


class Store:
    """What is kept in a state home. `home` is its directory for all workspaces."""

    def __init__(self, home: str, stores: Stores, blobs: str, bounds: Bounds) -> None:
        self._home = home
        self._ledger = stores.connect().ledger
        self._blobs = Blobs(blobs)
        self._bounds = bounds

    def close(self) -> None:
        self._ledger.close()

    def measure(self, outputs: Callable[[], tuple[int, int]] = lambda: (0, 0)) -> Usage:
        """How much of the disk it takes. `outputs` counts those of runs: files, and bytes. The larger parts of a large
        store are remembered from the last time, and only what came since is looked at."""
        areas, undoable = known_areas(self._home), self._ledger.undoable()
        known = load(self._home)
        found = self._measured(areas, outputs) if known is None else self._with_later(known)
        return Usage(
            self._bounds.bytes,
            self._bounds.days,
            [use_of(each, found.kept.get(each.path, (0, 0)), undoable.get(each.path, (0, None))) for each in areas],
            held_in(areas, self._ledger.held()),
            found.blobs,
            found.contents,
            outputs=found.outputs,
            at=None if known is None else known.at,
        )

    def _measured(self, areas: Sequence[Area], outputs: Callable[[], tuple[int, int]]) -> Measurement:
        found = Measurement(self._ledger.latest())
        runs = {area.path: names_in(area.kept) for area in areas}
        found.kept = {path: kept_of(path, names) for path, names in runs.items()}
        found.blobs, found.contents = self._blobs.used()
        files, found.outputs = outputs()
        if sum(map(len, runs.values())) + found.blobs + files >= measurement_cache.LARGE:
            measurement_cache.save(self._home, found)
        return found

    def _with_later(self, known: Measurement) -> Measurement:
        later: dict[str, list[str]] = {}
        for row in self._ledger.since(known.seq):
            later.setdefault(row.area, []).append(row.run)
        for area, runs in later.items():
            before, more = known.kept.get(area, (0, 0)), kept_of(area, runs)
            known.kept[area] = (before[0] + more[0], before[1] + more[1])
        return known

    def preview(self) -> PruneResult:
        """What a pass would do at most: packing may make more room than can be told before."""
        return self._pass(0.0, lambda: False).preview()

    def prune(
        self,
        *,
        thorough: bool = True,
        patience: float = 10.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> PruneResult:
        """A whole pass: pack, then prune. `patience` is how many seconds it waits for a workspace that is at work."""
        try:
            with lock_file(os.path.join(self._home, LOCK), patience, stopped) as mark:
                done = self._pass(patience, stopped)
                # Said at once: a pass that is cut short every time must not be begun every time.
                words = b"%d" % done.seen
                os.pwrite(mark, words, 0)
                os.ftruncate(mark, len(words))
                os.utime(mark)
                try:
                    return done.run(thorough=thorough)
                finally:
                    measurement_cache.clear(self._home)
        except Busy:
            raise MachineError("the store is being tidied up by another process", hint="try again later") from None

    def _pass(self, patience: float, stopped: Callable[[], bool]) -> MaintenancePass:
        return MaintenancePass(self._home, self._ledger, self._blobs, self._bounds, patience, stopped)
