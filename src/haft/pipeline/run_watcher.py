"""Watches runs from the outside, for traces and metrics: when they began, how long they waited for what, and how they
ended. Without a watcher, no stage is timed, and calls cost nothing more.

No stage knows of watchers. The pipeline puts a `Timed` around the stages in which a call waits or commits. The
time that a call waited for a person is in `run.states`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, Protocol

from haft.contracts import Outcome
from haft.pipeline.chain import Proceed, Stage
from haft.pipeline.stages import KeepOrder, Prepare, Queue, TakeLocks, Transact
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.pipeline.run import Run

StepName = Literal["order", "lock", "queue", "prepare", "commit"]
"""What a call does besides running its tool: wait for earlier calls of its batch, for locks of other calls, or for a
place in the queue; make the environment of its tool; commit its changes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One such part of a run, in seconds since the epoch."""

    name: StepName
    start: float
    end: float


class RunWatcher(Protocol):
    """Is told about every run of a host. It must be quick and raise nothing."""

    def began(self, run: Run) -> None:
        """Called in the context of the caller, before anything happens with the call."""

    def began_task(self, run: Run) -> None:
        """Called in the run's own task, before its first stage."""

    def ended(self, run: Run, outcome: Outcome) -> None:
        """Called once, after the outcome was recorded, and before the caller gets it."""


class Timed:
    """A stage that notes in `run.steps` how long another stage works before and after the stages within it."""

    def __init__(self, stage: Stage, before: StepName | None, after: StepName | None) -> None:
        self._stage = stage
        self._before = before
        self._after = after
        self.skips = getattr(stage, "skips", None)

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        name, since = self._before, time.time()

        def note() -> None:
            nonlocal since
            now = time.time()
            if name is not None:
                run.steps.append(Step(name, since, now))
            since = now

        async def timed(inner: Run) -> Outcome:
            nonlocal name, since
            note()
            try:
                return await proceed(inner)
            finally:
                name, since = self._after, time.time()

        try:
            return await self._stage(run, timed)
        finally:
            note()


TIMED: Final[Mapping[type, tuple[StepName | None, StepName | None]]] = {
    KeepOrder: ("order", None),
    TakeLocks: ("lock", None),
    Queue: ("queue", None),
    Prepare: ("prepare", None),
    Transact: (None, "commit"),
}
"""What the stages that are timed do before and after the stages within them."""


def timed(stages: Iterable[Stage]) -> list[Stage]:
    """The stages, each of `TIMED` with a `Timed` around it."""
    return [Timed(stage, *TIMED[type(stage)]) if type(stage) in TIMED else stage for stage in stages]
