"""The store of all replaced files: measuring, packing, and pruning it to its limits.

The service and the command line use this module. `usage` measures, and `maintenance` is one maintenance pass. A state
home has at most one pass at a time; calls go on meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

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

__all__ = ["PruneResult", "Store", "no_pruning"]


@contextlib.contextmanager
def no_pruning(home: str, patience: float) -> Iterator[None]:
    """A context manager in which nothing is pruned. `home` is the state home's directory for all workspaces. Waits
    `patience` seconds for a maintenance pass to end."""
    try:
        with lock_file(os.path.join(home, LOCK), patience):
            yield
    except Busy:
        raise MachineError("another process is pruning the store", hint="try again later") from None


class Store:
    """The store of a state home. `home` is the state home's directory for all workspaces."""

    def __init__(self, home: str, stores: Stores, blobs: str, bounds: Bounds) -> None:
        self._home = home
        self._ledger = stores.connect().ledger
        self._blobs = Blobs(blobs)
        self._bounds = bounds

    def close(self) -> None:
        self._ledger.close()

    def measure(self, outputs: Callable[[], tuple[int, int]] = lambda: (0, 0)) -> Usage:
        """The disk usage. `outputs` returns how many files the stored outputs of runs have, and their bytes. For a
        large store, the main numbers are cached, and only newer change sets are measured."""
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
        """The most that `prune` would remove now. `prune` may remove less, because it packs first, and packing frees
        space."""
        return self._pass(0.0, lambda: False).preview()

    def prune(
        self,
        *,
        thorough: bool = True,
        patience: float = 10.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> PruneResult:
        """Run a maintenance pass: pack, then prune. `patience` is how many seconds it waits for a locked workspace or
        for another pass. If the store is within its limits, prune only if `thorough`."""
        try:
            with lock_file(os.path.join(self._home, LOCK), patience, stopped) as mark:
                done = self._pass(patience, stopped)
                # Written before the pass, so that a pass that is interrupted does not start again at once.
                words = b"%d" % done.seen
                os.pwrite(mark, words, 0)
                os.ftruncate(mark, len(words))
                os.utime(mark)
                try:
                    return done.run(thorough=thorough)
                finally:
                    measurement_cache.clear(self._home)
        except Busy:
            raise MachineError("another process is pruning the store", hint="try again later") from None

    def _pass(self, patience: float, stopped: Callable[[], bool]) -> MaintenancePass:
        return MaintenancePass(self._home, self._ledger, self._blobs, self._bounds, patience, stopped)
