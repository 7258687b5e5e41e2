"""Counts the calls of a server, for `metrics`. Needs no package, and costs a few additions a call.

Every label has a bounded number of values, which haft chooses: kinds of tools, statuses, decisions, codes. No name of a
tool, user, run, thread or path is a label, because agents choose those.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from haft.contracts import ERROR_CODES, STATUSES, Outcome
from haft.pipeline import Run

SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
"""The upper bounds of the buckets of durations."""
KINDS: Final = (
    "builtin", "amp-toolbox", "bash-plugin", "agent-studio", "mcp", "python", "cli"
)  # fmt: skip
ACTIONS: Final = ("allow", "ask", "reject", "try", "delegate")
WAITS: Final = ("approval", "order", "lock", "queue", "prepare")
OTHER: Final = "other"


class Histogram:
    """How many durations fell into which bucket."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """The cumulative counts, each with the upper bound of its bucket as Prometheus writes it."""
        found, total = [], 0
        for bound, count in zip((*map(str, SECONDS), "+Inf"), self.counts, strict=True):
            total += count
            found.append((bound, float(total)))
        return found


class RunCounts:
    """A `RunWatcher` that counts. Everything happens in the thread of the event loop."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str, str]] = Counter()
        """Ended calls by the kind of their tool, their status and the decision about them."""
        self.errors: Counter[str] = Counter()
        self.durations = {kind: Histogram() for kind in (*KINDS, OTHER)}
        self.waits = {name: Histogram() for name in WAITS}
        self.commits = Histogram()
        self.cached = 0
        self.changed_files = 0
        self.output_bytes = 0
        self._live: dict[str, Run] = {}

    def began(self, run: Run) -> None:
        self._live[run.id] = run

    def began_task(self, run: Run) -> None:
        pass

    def ended(self, run: Run, outcome: Outcome) -> None:
        self._live.pop(run.id, None)
        tool, decision = run.call.tool, run.call.decision
        kind = _one_of(KINDS, None if tool is None else tool.spec.kind)
        action = "none" if decision is None else _one_of(ACTIONS, decision.action)
        self.calls[kind, _one_of(STATUSES, outcome.status), action] += 1
        if outcome.error is not None:
            self.errors[_one_of(ERROR_CODES, outcome.error.code)] += 1
        self.durations[kind].add(outcome.duration)
        self.cached += outcome.cached
        self.changed_files += len(outcome.changes.files)
        self.output_bytes += outcome.output_bytes
        for (_seq, start, status), (_next, end, _status) in zip(run.states, run.states[1:], strict=False):
            if status == "blocked-on-user":
                self.waits["approval"].add(end - start)
        for step in run.steps:
            (self.commits if step.name == "commit" else self.waits[step.name]).add(step.end - step.start)

    def live(self) -> Iterator[tuple[str, int]]:
        """How many calls have which status now."""
        found = Counter(run.status for run in self._live.values())
        for status in ("queued", "blocked-on-user", "in-progress", "cancellation-requested"):
            yield status, found[status]


def _one_of(known: Sequence[str] | frozenset[str], word: str | None) -> str:
    return word if word is not None and word in known else OTHER
