"""What has to go so that the store keeps to its budget and its age: the oldest runs first, and no more than it takes.

A reversal finds what it needs among what its own run displaced and what later ones did (see `reversing`), never earlier
ones. So runs go in the order of the list, and no run that stays misses anything that went. A run that needs nothing to
be taken back gives nothing back either, and stays.
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
    """A run that can no longer be undone, and why."""

    row: Row
    reason: str
    bytes: int
    """What it displaced and is given back."""


@dataclass(slots=True)
class Plan:
    """What goes."""

    used: int
    """Before."""
    after: int
    runs: list[PrunedRun] = field(default_factory=list)
    leftovers: list[tuple[str, int]] = field(default_factory=list)
    """Originals of runs that are forgotten already: whoever removed them was killed. Where, and how many bytes."""
    cut: int = 0
    """The last run of those that go, in the order of the list."""
    contents: list[str] = field(default_factory=list)
    """The digests of what nobody needs any more."""
    indexes: list[Area] = field(default_factory=list)
    """Workspaces whose next snapshot has to be taken from scratch."""
    unreachable: set[str] = field(default_factory=set)
    """Workspaces that are not there: as long as they may come back, no content goes."""


@dataclass(frozen=True, slots=True)
class IndexedContents:
    """What the snapshots of a workspace would like to find again."""

    area: Area
    at: float
    """When the workspace was used last."""
    contents: frozenset[str]


def indexed_contents(areas: Iterable[Area], rows: Sequence[Row]) -> list[IndexedContents]:
    """Of all workspaces that have any, the latest first."""
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
    """Where the snapshots of a workspace keep their memory."""
    return os.path.join(os.path.dirname(area.lock), "index")


def plan_for(
    rows: Sequence[Row],
    needs: Needs,
    sizes: dict[str, int],
    remembered: Sequence[IndexedContents],
    budget: int,
    days: float,
) -> Plan:
    """`rows` are all there are, oldest first."""
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
        budget = used  # It cannot be kept to, whatever goes: no promise is broken for nothing.
    plan.after -= sum(size for _place, size in leftovers)
    weights = dict(originals)
    for digest, size in sizes.items():
        if digest not in pinned:
            last = needs.last.get(digest, 0)
            if last in weights:
                weights[last] += size
            else:
                plan.after -= size  # Nobody needs it.
    plan.cut = _choose_runs(plan, kept, weights, originals, needs, budget, days)
    plan.contents = [digest for digest in sizes if digest not in pinned and not needs.is_needed(digest, plan.cut)]
    return plan


def _leftovers(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """What should be gone already, and its bytes: who was to remove it was killed, or found a disk that failed."""
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
    """What stays in any case. What snapshots remember saves them reading the workspace again, but no undo needs it:
    when there is too much of everything it gives way, but for the workspaces that were used last."""
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
    """The last run that goes, and before it all that give something back."""
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
