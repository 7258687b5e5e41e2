"""Watches: what was tried is shown to a person with its output and its diff, and then committed or thrown away.

It stands outside of the queue: no place and no lock is held while a person thinks. Where nobody can be asked, the
changes stay held, and any process can settle them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from haft.changes import run_uncancellable
from haft.contracts import (
    BadUsage,
    ChangesState,
    Outcome,
    Rejected,
    evolve,
)
from haft.pipeline.approval_broker import ApprovalBroker, Given, request_of, told_of
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.pipeline.stages.transact import named
from haft.values import replace

if TYPE_CHECKING:
    from haft.changes import EngineSelector


class Settle:
    """After the trial."""

    def __init__(
        self,
        broker: ApprovalBroker,
        engine_selector: Callable[[], EngineSelector],
    ) -> None:
        self._broker = broker
        self._engine_selector = engine_selector

    @staticmethod
    def passes(run: Run) -> bool:
        """Whether it was not tried."""
        return run.decision.action != "try"

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        outcome = await proceed(run)
        if outcome.changes.state != "held" or not await self._broker.has_someone():
            return outcome
        try:
            given = await self._ask(run, outcome)
        except asyncio.CancelledError:
            with contextlib.suppress(BadUsage):  # Someone else settled it meanwhile.
                run.changes = await run_uncancellable(lambda: self._engine_selector().drop(run.id))
            raise
        became = self._engine_selector().state(run.id)
        if became != "held":
            return self._settled_elsewhere(run, outcome, became)
        answer = given.answer
        if given.by == "expiry":
            return self._expired(run, outcome, answer.message or "nobody answered")
        if answer.approved is not True:
            reason = answer.message or "a person said no"
            changes = await run_uncancellable(lambda: self._engine_selector().drop(run.id))
            run.changes = changes
            decision = replace(run.decision, action="reject", layer="approval", by="person", reason=reason)
            failure = Rejected(f"`{run.call.name}` was tried, and its changes were thrown away: {reason}").failure()
            return evolve(outcome, status="rejected-by-user", error=failure, changes=changes, decision=decision)
        run.turn("in-progress")
        settled = await run_uncancellable(lambda: self._engine_selector().apply(run.id, outcome.sandbox.writable))
        run.changes = settled.changes
        reason = answer.message or "the approver said yes, having seen the changes"
        decision = replace(run.decision, action="allow", layer="approval", by="person", reason=reason)
        outcome = evolve(outcome, changes=settled.changes, decision=decision)
        if settled.error is not None:
            outcome = evolve(outcome, status="error", error=named(settled.error.failure(), run.id))
        return outcome

    @staticmethod
    def _settled_elsewhere(run: Run, outcome: Outcome, became: ChangesState) -> Outcome:
        """Another process was faster than the answer: what it did is done."""
        asked = run.decision
        dropped = became == "discarded"
        reason = f"another process {'threw its changes away' if dropped else 'committed its changes'} meanwhile"
        run.changes = changes = replace(outcome.changes, state=became, reason=None)
        decision = replace(asked, action="reject" if dropped else "allow", layer="approval", by="person", reason=reason)
        outcome = evolve(outcome, changes=changes, decision=decision)
        if not dropped:
            return outcome
        failure = Rejected(f"`{run.call.name}` was tried, and {reason}").failure()
        return evolve(outcome, status="rejected-by-user", error=failure)

    @staticmethod
    def _expired(run: Run, outcome: Outcome, reason: str) -> Outcome:
        """Nobody looked at it in time. What was tried is not thrown away: it stays held."""
        decision = replace(run.decision, action="reject", layer="approval", by="expiry", reason=reason)
        failure = Rejected(
            f"`{run.call.name}` was tried, and {reason}: its changes are held",
            hint=f"`haft changes apply {run.id}` commits them, `haft changes drop {run.id}` throws them away",
        ).failure()
        return evolve(outcome, status="rejected-by-user", error=failure, decision=decision)

    async def _ask(self, run: Run, outcome: Outcome) -> Given:
        diff = await asyncio.to_thread(self._engine_selector().diff_text, run.id)
        reason = f"it was tried: this is what it changed ({run.decision.reason})"
        request = request_of(run, outcome.sandbox, reason, diff=diff, output=outcome.output)
        run.turn("blocked-on-user", told_of(request))
        return await self._broker.ask(run, request)
