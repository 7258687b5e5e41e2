"""Pauses: requests for approval that go to the program that made a call, instead of the host's approver.

The program sees each request of its call, and of all calls below it, as a `Pause`. It can answer the pause now or much
later, in this process or in another one; a person can answer in the inbox meanwhile. The stage `approve` asks, the
broker passes the request on to `Pauses.ask`, and the stage `record` stores what another host needs to go on with the
run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft import policy
from haft.contracts import ApprovalAnswer, ApprovalRequest, Call, Outcome, RunId
from haft.runs import Asked
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.pipeline.run import Run
    from haft.policy import Answered

_NOT_COMPARED: Final = ("reason", "batch", "chain", "chainTools", "output")
"""Parts of what a person sees that do not change what the call does."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A request for approval that waits for the program which made the call."""

    root: RunId
    """The run of the call that the program made."""
    run: RunId
    """The run that needs approval: the same, or one below it."""
    request: ApprovalRequest
    outlives_host: bool
    """Whether the run stays paused when its host ends. If not, it ends with the host."""
    give: Callable[[ApprovalAnswer], bool]

    def answer(self, answer: bool | ApprovalAnswer) -> bool:
        """Answer the request. Returns False if somebody answered it before."""
        return self.give(answer if isinstance(answer, ApprovalAnswer) else ApprovalAnswer(approved=answer))


class Pauses:
    """The pauses of one call, and of all calls below it."""

    def __init__(self, root: RunId) -> None:
        self.root = root
        self._open: dict[str, Pause] = {}
        self._changed = asyncio.Event()

    @property
    def open(self) -> tuple[Pause, ...]:
        """The pauses that wait, the oldest first."""
        return tuple(self._open.values())

    async def ask(self, request: ApprovalRequest, *, outlives_host: bool) -> ApprovalAnswer:
        """Wait until the program answers. Cancelled if somebody else answers."""
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()

        def give(given: ApprovalAnswer) -> bool:
            is_open = self._open.pop(name, None) is not None
            if is_open:
                answer.set_result(given)
            return is_open

        name = request.id or request.run
        self._open[name] = Pause(self.root, request.run, request, outlives_host, give)
        self._changed.set()
        try:
            return await answer
        finally:
            self._open.pop(name, None)

    async def next(self, run: Run) -> Pause | Outcome:
        """The first pause that waits, as soon as there is one; or the outcome of `run`, if it ends before."""
        end = asyncio.ensure_future(_outcome_of(run))
        try:
            while run.outcome is None:
                if self._open:
                    return self.open[0]
                self._changed.clear()
                change = asyncio.ensure_future(self._changed.wait())
                try:
                    await asyncio.wait({end, change}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
            return run.outcome
        finally:
            end.cancel()


async def _outcome_of(run: Run) -> Outcome:
    return await run


@dataclass(slots=True)
class Resumed:
    """What a run that is taken over brings along."""

    asked: Asked
    answer: ApprovalAnswer | None = None
    """The answer of the program that resumes the run."""
    answered: Answered | None = None
    """The answer that a person gave in the inbox, which counts first."""


@dataclass(slots=True, eq=False)
class Pausing:
    """What a run keeps whose requests become pauses."""

    pauses: Pauses
    made: Call
    """The call as it was made, before any stage changed it."""
    asked: Asked | None = None
    """What the run asks a person now, if another host could ask it again."""
    outlives_host: bool = False
    """Whether another host could make the call again, as far as the run itself is concerned."""
    resumed: Resumed | None = None
    stays_open: bool = False
    """Whether the host is ending, and the run is not: another host goes on with it."""


def outlives_host(run: Run) -> bool:
    """Whether a run asks a person now, and stays open when its host ends."""
    return run.pausing is not None and run.pausing.asked is not None and can_go_on(run)


def can_go_on(run: Run) -> bool:
    """Whether another host could go on with a run, and with every run that waits for it."""
    at: Run | None = run
    while at is not None:
        if at.pausing is None or not at.pausing.outlives_host:
            return False
        at = at.parent
    return True


def digest_of_request(shown: Mapping[str, Any]) -> str:
    """The digest of what a request shows of its call."""
    return policy.digest_of({name: value for name, value in shown.items() if name not in _NOT_COMPARED})


@contextlib.contextmanager
def asking(run: Run, request: str | None, shown: Mapping[str, Any]) -> Iterator[None]:
    """A context in which a run asks a person whether its call may run, which another host could ask again. `request` is
    the id of the request, and `shown` is what it shows."""
    if run.pausing is None or request is None:
        yield
        return
    run.pausing.asked = Asked(request, digest_of_request(shown))
    try:
        yield
    finally:
        if not run.pausing.stays_open:
            run.pausing.asked = None
