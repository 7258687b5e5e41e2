"""One maintenance pass over the store: pack originals into the blob store, then prune the oldest runs.

`packer` packs, `needs` says which blobs must stay, and `prune_plan` says what is removed. The pass may be killed at any
point: a run is recorded as pruned before its files are removed, and the next pass removes files that are left over.
Workspaces are locked only briefly, so that no call waits long.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from haft.changes.commit.area import known_areas, remove
from haft.changes.commit.journal import OUT, sync
from haft.changes.ledger import Ledger
from haft.changes.store.blobs import Blobs
from haft.changes.store.bounds import Bounds
from haft.changes.store.needs import Needs, is_kept
from haft.changes.store.packer import Packer, PackResult
from haft.changes.store.prune_plan import DAY, Plan, PrunedRun, index_of, indexed_contents, plan_for
from haft.changes.store.usage import HeldChangeSet, held_in, originals_in
from haft.changes.store.workspace_locks import Busy, lock_workspaces
from haft.contracts import ToolFailed, path_to_json

_SLICE: Final = 200
"""How many blobs are removed under one lock. Then the lock is released, so that calls can go on."""
_PAUSE: Final = 0.002


@dataclass(slots=True)
class PruneResult:
    """What a maintenance pass did, or would do."""

    used: int = 0
    """The bytes that the store used before the pass; `after` are those after it."""
    after: int = 0
    runs: list[PrunedRun] = field(default_factory=list)
    contents: int = 0
    """How many blobs were removed."""
    packed: PackResult = field(default_factory=PackResult)
    held: list[HeldChangeSet] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    """Workspaces that stayed locked, and are left for the next pass."""
    missing: list[str] = field(default_factory=list)
    """Workspaces that are missing, perhaps because their disk is not mounted: so no blob is removed."""

    def to_json(self) -> dict[str, Any]:
        return {
            "used": self.used,
            "after": self.after,
            "runs": [
                {
                    "run": each.row.run,
                    "workspace": path_to_json(each.row.workspace)["path"],
                    "at": each.row.at,
                    "verb": each.row.verb,
                    "reason": each.reason,
                }
                for each in self.runs
            ],
            "contents": self.contents,
            "packed": {"files": self.packed.files, "bytes": self.packed.bytes},
            "held": [each.to_json() for each in self.held],
            "busy": [path_to_json(each)["path"] for each in self.busy],
            "missing": [path_to_json(each)["path"] for each in self.missing],
        }


class MaintenancePass:
    """One maintenance pass. It works on the change sets that the ledger has when this object is made. `home` is the
    directory for all workspaces in the state home."""

    def __init__(
        self,
        home: str,
        ledger: Ledger,
        blobs: Blobs,
        bounds: Bounds,
        patience: float,
        stopped: Callable[[], bool],
    ) -> None:
        """`patience` is how many seconds the pass waits for a locked workspace. The pass ends soon after `stopped`
        returns True."""
        self._ledger = ledger
        self._blobs = blobs
        self._bounds = bounds
        self._patience = patience
        self._stopped = stopped
        self._areas = known_areas(home)
        self._rows = ledger.all()
        self._needs = Needs(home, ledger)
        self._done = PruneResult(held=held_in(self._areas, ledger.held()))
        self.seen = max((row.seq for row in self._rows), default=0)
        """The highest sequence number in the ledger when this object was made."""

    def preview(self) -> PruneResult:
        """What the pass would prune, without doing it and without packing."""
        plan, done = self._plan(), self._done
        done.runs, done.contents = plan.runs, len(plan.contents)
        return done

    def run(self, *, thorough: bool) -> PruneResult:
        """Run the pass. Workspaces that stay locked are left out. If the store is within its limits, prune only if
        `thorough`."""
        self._blobs.sweep()
        self._sync()
        before = self._used()
        self._pack(everything=before > self._bounds.bytes // 2)
        if not self._stopped() and (thorough or self._is_over()):
            plan = self._plan()
            self._forget(plan)
            for place, _size in plan.leftovers:
                remove(place)
            self._sweep(plan)
        self._done.used, self._done.after = before, self._used()
        self._done.busy = list(dict.fromkeys(self._done.busy))
        return self._done

    def _sync(self) -> None:
        """Sync all areas to disk. After a power failure, recovery needs the originals of an unsynced commit to revert
        it, so this pass may remove originals only if their commits are synced."""
        for area in self._areas:
            with contextlib.suppress(OSError):
                sync(area)

    def _used(self) -> int:
        return self._blobs.used()[1] + sum(originals_in(area) for area in self._areas)

    def _is_over(self) -> bool:
        limit = time.time() - self._bounds.days * DAY
        return self._used() > self._bounds.bytes or any(row.at < limit for row in self._rows if is_kept(row))

    def _plan(self) -> Plan:
        needs, bounds, done = self._needs, self._bounds, self._done
        needs.update(self._areas)
        sizes = dict(self._blobs.sizes())
        plan = plan_for(self._rows, needs, sizes, indexed_contents(self._areas, self._rows), bounds.bytes, bounds.days)
        done.used, done.after, done.missing = plan.used, plan.after, sorted(plan.unreachable)
        return plan

    def _pack(self, *, everything: bool) -> None:
        limit = time.time() - (0.0 if everything else self._bounds.rest_days * DAY)
        packed = self._done.packed
        for area in self._areas:
            rows = [row for row in self._rows if row.area == area.path and is_kept(row) and row.at <= limit]
            packer = Packer(area, self._blobs, self._patience, self._stopped)
            try:
                packer.pack(rows)
            except Busy as busy:
                self._done.busy.append(busy.workspace)
            except (OSError, ToolFailed):
                pass  # The disk is full, or the pass must stop. Originals packed so far stay packed.
            packed.files += packer.packed.files
            packed.bytes += packer.packed.bytes

    def _forget(self, plan: Plan) -> None:
        """Record that the pruned runs can no longer be undone, then remove their originals. haft holds the workspace
        lock while it records this, so that no undo or redo that needs the originals is under way."""
        places = {area.path: area for area in self._areas}
        by_area: dict[str, list[PrunedRun]] = {}
        for each in plan.runs:
            by_area.setdefault(each.row.area, []).append(each)
        for path, runs in by_area.items():
            try:
                with lock_workspaces([places[path]] if path in places else [], self._patience, self._stopped):
                    for each in runs:
                        self._ledger.forget_images(each.row.run, each.reason)
                    self._ledger.sync()
            except Busy as busy:
                self._done.busy.append(busy.workspace)
                for each in runs:
                    self._needs.pin(each.row)
                continue
            self._done.runs += runs
            for each in runs:
                remove(os.path.join(path, "kept", each.row.run, OUT))

    def _sweep(self, plan: Plan) -> None:
        """Remove blobs that nobody needs. All workspaces are locked meanwhile, because any call may begin to need a
        blob. The locks are released after every `_SLICE` blobs, so that no call waits long."""
        # No call runs in a missing workspace.
        present = [area for area in self._areas if os.path.isdir(area.workspace)]
        for some in _slices(plan.contents, _SLICE):
            if self._stopped():
                return
            try:
                with lock_workspaces(present, self._patience, self._stopped):
                    self._needs.update(self._areas)
                    for digest in some:
                        if not self._needs.is_needed(digest, plan.cut):
                            self._blobs.remove(digest)
                            self._done.contents += 1
                    while plan.indexes:
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(index_of(plan.indexes.pop()))
            except Busy as busy:
                self._done.busy.append(busy.workspace)
                return
            time.sleep(_PAUSE)


def _slices(every: Iterable[str], size: int) -> Iterator[list[str]]:
    waiting = iter(every)
    while some := list(islice(waiting, size)):
        yield some
