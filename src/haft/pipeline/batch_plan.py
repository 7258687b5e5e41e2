"""The order of a batch: which call waits for which, and why. `Batch` applies it to runs, and `service.plan_batch` shows
it without running anything.

A call waits for an earlier call if their footprints meet, or if its `after` names that call. It waits for no later
call, so the order of the list decides, and there are no circles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haft.contracts import Footprint, why_ordered
from haft.pipeline.batched_calls import BatchedCall
from haft.values import dataclass


def why_after(earlier: BatchedCall, before: Footprint, later: BatchedCall, after: Footprint) -> str | None:
    """Why a call must wait for an earlier call with the footprint `before`; None if it need not."""
    if earlier.id in later.after:
        return f"its `after` names {earlier.id}"
    return why_ordered(before, after)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a plan."""

    call: BatchedCall
    group: int
    """The number of its group, counted from 1."""
    waits_for: tuple[tuple[str, str], ...]
    """The ids of the calls it waits for, each with the reason."""
    problem: str | None = None
    """Why the call would fail as things are now; None if nothing is wrong with it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.call.id,
            "tool": self.call.tool,
            "group": self.group,
            "waitsFor": [{"id": name, "reason": reason} for name, reason in self.waits_for],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The order in which a batch would run. The calls of one group may run at once, as far as there are places."""

    calls: tuple[PlannedCall, ...]

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The ids of the calls, group by group: a call waits only for calls of earlier groups."""
        last = max((each.group for each in self.calls), default=0)
        return tuple(
            tuple(each.call.id for each in self.calls if each.group == number) for number in range(1, last + 1)
        )

    def to_json(self) -> dict[str, Any]:
        return {"groups": [list(group) for group in self.groups], "calls": [each.to_json() for each in self.calls]}


def plan(
    calls: Sequence[BatchedCall], footprints: Sequence[Footprint], problems: Sequence[str | None] | None = None
) -> BatchPlan:
    """The plan of a batch whose calls have these footprints."""
    planned: list[PlannedCall] = []
    for at, call in enumerate(calls):
        waits_for, group = [], 1
        for earlier, before in zip(planned, footprints, strict=False):
            reason = why_after(earlier.call, before, call, footprints[at])
            if reason is not None:
                waits_for.append((earlier.call.id, reason))
                group = max(group, earlier.group + 1)
        planned.append(PlannedCall(call, group, tuple(waits_for), None if problems is None else problems[at]))
    return BatchPlan(tuple(planned))
