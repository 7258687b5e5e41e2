"""What to prune so that the store keeps its budget and age limit: the oldest runs first, and no more than needed.

To undo or redo a run, haft needs only files that this run and later runs replaced, never those that earlier runs
replaced. So runs are pruned from the oldest on, and no remaining run loses a file that it needs. A run whose undo needs
no stored content stays, because pruning it would free nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from haft.changes.commit.area import Area
from haft.changes.ledger import Row
from haft.changes.snapshots.index import Index
from haft.changes.store.needs import Needs, is_kept
from haft.changes.store.usage import disk_usage, format_bytes, originals_of

DAY: Final = 86_400.0


@dataclass(slots=True)
class PrunedRun:
    """A run that is pruned, and the reason. It can no longer be undone."""

    row: Row
    reason: str
    bytes: int
    """The bytes of the run's originals, which pruning frees."""


@dataclass(slots=True)
class Plan:
    """What a prune removes."""

    used: int
    """The bytes that the store uses before the prune; `after` are those after it."""
    after: int
    runs: list[PrunedRun] = field(default_factory=list)
    leftovers: list[tuple[str, int]] = field(default_factory=list)
    """Directories that an interrupted prune or drop left behind: the path of each, and its bytes."""
    cut: int = 0
    """The sequence number of the newest pruned run; 0 if none is pruned."""
    contents: list[str] = field(default_factory=list)
    """Digests of the blobs to remove, because nobody will need them any more."""
    indexes: list[Area] = field(default_factory=list)
    """Areas of workspaces whose snapshot index is removed, so that the next snapshot reads all files again."""
    unreachable: set[str] = field(default_factory=set)
    """Workspaces that are missing, perhaps because their disk is not mounted: so no blob is removed."""


@dataclass(frozen=True, slots=True)
class IndexedContents:
    """The digests in the snapshot index of one workspace. Because of this index, the next snapshot need not read
    unchanged files again."""

    area: Area
    at: float
    """When the workspace was last used."""
    contents: frozenset[str]


def indexed_contents(areas: Iterable[Area], rows: Sequence[Row]) -> list[IndexedContents]:
    """The indexed contents of each workspace that has a snapshot index; the most recently used workspace comes
    first."""
    used: dict[str, float] = {}
    for row in rows:
        used[row.workspace] = max(row.at, used.get(row.workspace, 0.0))
    found = []
    for area in areas:
        place = index_of(area)
        try:
            at = max(os.stat(place).st_mtime, used.get(area.workspace, 0.0))
        except OSError:
            continue
        found.append(IndexedContents(area, at, frozenset(Index.read(place).contents.values())))
    return sorted(found, key=lambda memory: memory.at, reverse=True)


def index_of(area: Area) -> str:
    """The path of a workspace's snapshot index."""
    return os.path.join(os.path.dirname(area.lock), "index")


def plan_for(
    rows: Sequence[Row],
    needs: Needs,
    sizes: dict[str, int],
    remembered: Sequence[IndexedContents],
    budget: int,
    days: float,
) -> Plan:
    """Make the plan: what to prune. `rows` are all change sets, oldest first. `sizes` maps each blob to its bytes on
    disk. `remembered` are the snapshot indexes of all workspaces, most recently used first."""
    kept = [row for row in rows if is_kept(row)]
    originals = {row.seq: originals_of(row.area, row.run) for row in kept}
    leftovers = _leftovers(rows)
    used = sum(originals.values()) + sum(size for _place, size in leftovers) + sum(sizes.values())
    plan = Plan(used, used, leftovers=leftovers)
    pinned = _pinned_contents(plan, needs, sizes, remembered, budget)
    plan.unreachable = set(needs.unreachable.values())
    if plan.unreachable:
        pinned, plan.indexes = set(sizes), []
    if sum(size for digest, size in sizes.items() if digest in pinned) > budget:
        budget = used  # The budget cannot be met in any case: prune nothing in vain.
    plan.after -= sum(size for _place, size in leftovers)
    weights = dict(originals)
    for digest, size in sizes.items():
        if digest not in pinned:
            last = needs.last.get(digest, 0)
            if last in weights:
                weights[last] += size
            else:
                plan.after -= size  # No run needs the blob.
    plan.cut = _choose_runs(plan, kept, weights, originals, needs, budget, days)
    plan.contents = [digest for digest in sizes if digest not in pinned and not needs.is_needed(digest, plan.cut)]
    return plan


def _leftovers(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Directories that an earlier prune or drop did not remove, because it was killed or the disk failed; each
    directory with its bytes."""
    found = []
    for row in rows:
        place = os.path.join(row.area, "kept", row.run, "out")
        if not row.kept and os.path.isdir(place):
            found.append((place, originals_of(row.area, row.run)))
        dropped = os.path.join(row.area, "held", row.run)
        if row.state == "discarded" and os.path.isdir(dropped):
            found.append((dropped, disk_usage(dropped)))
    return found


def _pinned_contents(
    plan: Plan, needs: Needs, sizes: dict[str, int], remembered: Sequence[IndexedContents], budget: int
) -> set[str]:
    """The digests of blobs that stay whichever runs are pruned. Some of them are needed by no undo: they stay because a
    snapshot index lists them, so that the next snapshot need not read the files again. If the store is over its budget,
    only a part of the budget is for such blobs, and the most recently used workspaces come first. The indexes that do
    not fit are added to `plan.indexes`."""
    pinned = set(needs.pinned)
    room = budget // 2 if plan.used > budget else None
    for number, memory in enumerate(remembered):
        fresh = memory.contents - pinned
        size = sum(sizes.get(digest, 0) for digest in fresh)
        most = None if room is None else budget * 9 // 10 if number == 0 else room
        if most is None or size <= most:
            pinned |= fresh
            room = None if room is None else room - size
        else:
            plan.indexes.append(memory.area)
    return pinned


def _choose_runs(
    plan: Plan,
    kept: Sequence[Row],
    weights: dict[int, int],
    originals: dict[int, int],
    needs: Needs,
    budget: int,
    days: float,
) -> int:
    """Add the runs to prune to the plan, and return the sequence number of the newest of them; 0 if there are none."""
    now = time.time()
    date = time.strftime("%Y-%m-%d", time.localtime(now))
    cut = 0
    is_old = True
    for row in kept:
        is_old = is_old and row.at < now - days * DAY
        if not is_old and plan.after <= budget:
            break
        cut = row.seq
        if row.seq in needs.needing_nothing and not is_old:
            plan.after -= weights[row.seq] - originals[row.seq]
            continue
        plan.after -= weights[row.seq]
        why = f"older than {days:g} days" if is_old else f"over the budget of {format_bytes(budget)}"
        plan.runs.append(PrunedRun(row, f"pruned on {date}: {why}", originals[row.seq]))
    return cut
