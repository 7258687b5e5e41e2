"""A stage that watches a call: after a trial run, it shows the output and the diff to a person, and then applies the
changes, or a part of them, or drops them.

The stage lies outside the queue, so that the call holds no place and no lock while a person thinks. If no person can
answer, the changes stay held, and any process can apply or drop them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol

from haft.changes import run_uncancellable
from haft.contracts import (
    Action,
    ApprovalAnswer,
    BadUsage,
    ChangesState,
    Decision,
    Outcome,
    Principal,
    Rejected,
    RunId,
    evolve,
)
from haft.pipeline import nesting
from haft.pipeline.approval_broker import ApprovalBroker, ReceivedAnswer, approval_request, waiting_facts
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.pipeline.stages.transact import with_run_id
from haft.values import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haft.changes import EngineSelector


class ApplyApproved(Protocol):
    """Applies those changes of a trial run that a person approved, in a run of its own, which it returns. `parent` is
    the run that made the trial run."""

    def __call__(
        self, run: RunId, paths: Sequence[str], *, granted: Sequence[str], principal: Principal, parent: RunId | None
    ) -> Run: ...


class Review:
    """Lets a person apply or drop the changes of a trial run."""

    def __init__(
        self,
        broker: ApprovalBroker,
        engine_selector: Callable[[], EngineSelector],
        apply_approved: ApplyApproved,
    ) -> None:
        self._broker = broker
        self._engine_selector = engine_selector
        self._apply_approved = apply_approved

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether the call is no trial run, or a part of one: then a person sees its changes when that one ends."""
        return run.decision.action != "try" or nesting.trial_above(run) is not None

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        outcome = await proceed(run)
        if outcome.changes.state != "held" or not await self._broker.can_ask(run):
            return outcome
        try:
            given = await self._ask(run, outcome)
        except asyncio.CancelledError:
            with contextlib.suppress(BadUsage):  # Another process has applied or dropped the changes meanwhile.
                run.changes = await run_uncancellable(lambda: self._engine_selector().drop(run.id))
            raise
        became = self._engine_selector().state(run.id)
        if became != "held":
            return self._settled_elsewhere(run, outcome, became)
        answer = given.answer
        if given.by != "person":
            return self._unanswered(run, outcome, given.by == "expiry", answer.message or "nobody answered")
        if answer.approved is not True:
            reason = answer.message or "a person rejected it"
            changes = await run_uncancellable(lambda: self._engine_selector().drop(run.id))
            run.changes = changes
            decision = replace(run.decision, action="reject", layer="approval", by="person", reason=reason)
            failure = Rejected(f"the changes of the trial run of `{run.call.name}` were dropped: {reason}").failure()
            return evolve(outcome, status="rejected-by-user", error=failure, changes=changes, decision=decision)
        run.set_status("in-progress")
        reason = answer.message or "the approver approved the changes"
        decision = replace(run.decision, action="allow", layer="approval", by="person", reason=reason)
        if answer.paths:
            return await self._apply_part(run, outcome, answer, decision)
        result = await run_uncancellable(lambda: self._engine_selector().apply(run.id, outcome.sandbox.writable))
        run.changes = result.changes
        outcome = evolve(outcome, changes=result.changes, decision=decision)
        if result.error is not None:
            outcome = evolve(outcome, status="error", error=with_run_id(result.error.failure(), run.id))
        return outcome

    async def _apply_part(self, run: Run, outcome: Outcome, answer: ApprovalAnswer, decision: Decision) -> Outcome:
        """The outcome after the changes of the chosen paths were applied; the rest stays held."""
        assert isinstance(answer.who, Principal)  # The broker has set it.
        applying = self._apply_approved(
            run.id,
            answer.paths,
            granted=outcome.sandbox.writable,
            principal=answer.who,
            parent=None if run.parent is None else run.parent.id,
        )
        applied = await applying
        state = self._engine_selector().state(run.id)
        if applied.error is not None:
            run.changes = replace(outcome.changes, reason=applied.error.message)
            failed = evolve(outcome, status="error", error=with_run_id(applied.error, run.id))
            return evolve(failed, changes=run.changes, decision=decision)
        if state != "held":  # The paths were all that the run had changed.
            run.changes = replace(outcome.changes, state=state, reason=None)
            return evolve(outcome, changes=run.changes, decision=decision)
        taken = {each.path for each in applied.changes.files}
        left = tuple(each for each in outcome.changes.files if each.path not in taken)
        reason = f"{applied.run_id} applied the other changes: a person approved only a part of them"
        run.changes = replace(outcome.changes, files=left, reason=reason)
        paths = "1 path" if len(left) == 1 else f"{len(left)} paths"
        run.add_note(
            f"a person approved {len(taken)} of {len(outcome.changes.files)} changed paths, and {applied.run_id} "
            f"applied them; {paths} stay{'s' if len(left) == 1 else ''} held: `haft changes apply {run.id}` applies "
            f"the rest, `haft changes drop {run.id}` drops it"
        )
        return evolve(outcome, changes=run.changes, decision=decision)

    @staticmethod
    def _settled_elsewhere(run: Run, outcome: Outcome, became: ChangesState) -> Outcome:
        """The outcome if another process has applied or dropped the changes before the answer came."""
        decision = run.decision
        dropped = became == "discarded"
        reason = f"another process {'dropped' if dropped else 'applied'} its changes"
        run.changes = changes = replace(outcome.changes, state=became, reason=None)
        action: Action = "reject" if dropped else "allow"
        decision = replace(decision, action=action, layer="approval", by="person", reason=reason)
        outcome = evolve(outcome, changes=changes, decision=decision)
        if not dropped:
            return outcome
        failure = Rejected(f"trial run of `{run.call.name}`: {reason}").failure()
        return evolve(outcome, status="rejected-by-user", error=failure)

    @staticmethod
    def _unanswered(run: Run, outcome: Outcome, is_expired: bool, reason: str) -> Outcome:
        """The outcome if nobody answered. The changes are not dropped: they stay held."""
        by: Literal["expiry", "nobody"] = "expiry" if is_expired else "nobody"
        decision = replace(run.decision, action="reject", layer="approval", by=by, reason=reason)
        failure = Rejected(
            f"the changes of the trial run of `{run.call.name}` are held: {reason}",
            hint=f"`haft changes apply {run.id}` applies them, `haft changes drop {run.id}` drops them",
        ).failure()
        return evolve(outcome, status="rejected-by-user", error=failure, decision=decision)

    async def _ask(self, run: Run, outcome: Outcome) -> ReceivedAnswer:
        diff = await asyncio.to_thread(self._engine_selector().diff_text, run.id)
        reason = f"these are the changes of a trial run ({run.decision.reason})"
        request = approval_request(run, outcome.sandbox, reason, diff=diff, output=outcome.output)
        run.set_status("blocked-on-user", waiting_facts(request))
        return await self._broker.ask(run, request)
