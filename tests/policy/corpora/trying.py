"""Runs the lines that need no approval in a jail, and checks that they only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from corpora.jail import Jail, Watched
from corpora.watching import Effect, effects

from haft.policy.analysis import analyse
from haft.policy.analysis.programs import PROGRAMS
from haft.policy.analysis.verdict import AnalysisContext

BATCH = 500
MOST_SHOWN = 5
WRAPPERS = frozenset(("env", "nice", "tee", "timeout", "xargs"))
"""Programs that only start another one: haft analyses that one, so these are not in the tables."""


@dataclass(slots=True)
class Trial:
    """The results of running many lines."""

    lines: int = 0
    passed: int = 0
    """How many lines needed no approval; each was run."""
    ended_late: int = 0
    """How many were stopped after a timeout, such as `tail -f`."""
    violations: list[tuple[str, list[Effect]]] = field(default_factory=list)

    def __str__(self) -> str:
        said = f"{self.lines} lines, {self.passed} passed unasked and were run, {self.ended_late} of them stopped; "
        return said + f"{len(self.violations)} did more than read"


def passes(command: str, workspace: str) -> bool:
    """Whether a line needs no approval."""
    return analyse(command, AnalysisContext(workspace)).safe


def violations(watched: Watched) -> list[Effect]:
    """The effects of a line that the analysis did not foresee."""
    return effects(watched, PROGRAMS.keys() | WRAPPERS)


def try_out(jail: Jail, lines: Iterable[str], told: Callable[[Trial], None] = lambda _trial: None) -> Trial:
    """Run each line once; `told` is called after every batch."""
    trial, known = Trial(), set[str]()
    for batch in _batches(lines):
        trial.lines += len(batch)
        fresh = [line for line in dict.fromkeys(batch) if line not in known]
        known.update(fresh)
        approved = [line for line in fresh if passes(line, jail.workspace)]
        trial.passed += len(approved)
        for watched in jail.run_all(approved, neutral=True):
            trial.ended_late += watched.late
            if found := violations(watched):
                trial.violations.append((watched.command, found[:MOST_SHOWN]))
        told(trial)
    return trial


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    waiting = iter(lines)
    while batch := list(islice(waiting, BATCH)):
        yield batch
