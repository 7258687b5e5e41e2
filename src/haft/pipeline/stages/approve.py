"""Stops: what asks waits for a person, `blocked-on-user`, and ends here when the answer is no or nobody can be asked.

A person may answer with other arguments. These are validated and decided again, and asked again where that says so:
what runs is always what was judged.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

from haft.contracts import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    Call,
    Decision,
    Outcome,
    Rejected,
    RunId,
    revised,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.run import Run
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.validate import Validate


class Approve:
    """Ask whoever can be asked."""

    def __init__(
        self, live: Mapping[RunId, Run], approver: Approver | None, validate: Validate, decide: Decide
    ) -> None:
        self._live = live
        self._approver = approver
        self._validate = validate
        self._decide = decide

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        assert call.decision is not None
        if call.decision.action == "ask":
            call = await self._ask(call)
        if call.decision is not None and call.decision.action == "reject":
            raise Rejected(f"`{call.name}` was rejected: {call.decision.reason}")
        return await proceed(call)

    async def _ask(self, call: Call) -> Call:
        """Until a person agrees to exactly the arguments that stand."""
        run = self._live[call.run]
        decision = call.decision
        assert decision is not None
        assert call.tool is not None
        if self._approver is None:
            self._settle(run, call, "nobody", approved=False, reason="nobody is there to be asked")
            raise Rejected(
                f"`{call.name}` needs approval ({decision.reason}), and nobody is there to be asked",
                hint="approve it with --approve, call it from a terminal, or give ToolService an approver",
            )
        run.turn("blocked-on-user", call)
        while True:
            request = ApprovalRequest(
                run=call.run,
                tool=call.name,
                description=call.tool.spec.description,
                # A copy: what was shown cannot be changed behind the person's back.
                arguments=copy.deepcopy(dict(call.arguments)),
                reason=decision.reason,
                who=call.who,
                thread=call.thread,
            )
            given = await self._approver(request)
            answer = given if isinstance(given, ApprovalAnswer) else ApprovalAnswer(approved=given is True)
            if not answer.approved:
                reason = answer.message or "a person said no"
                self._settle(run, call, "person", approved=False, reason=reason)
                raise Rejected(f"`{call.name}` was rejected: {reason}")
            if answer.arguments is None or answer.arguments == call.arguments:
                return self._settle(run, call, "person", approved=True, reason="a person approved it")
            call = self._decide.judge(await self._validate.judge(revised(call, arguments=dict(answer.arguments))))
            assert call.decision is not None
            # The person saw and wrote these arguments: agreeing to them is what the answer was.
            if call.decision.action != "reject":
                return self._settle(run, call, "person", approved=True, reason="a person approved it, edited")

    @staticmethod
    def _settle(run: Run, call: Call, by: str, *, approved: bool, reason: str) -> Call:
        asked = call.decision
        assert asked is not None
        decision = Decision(
            action="allow" if approved else "reject",
            layer="approval",
            rule=asked.rule,
            source=asked.source,
            by="person" if by == "person" else "nobody",
            reason=reason,
            parts=asked.parts,
        )
        call = revised(call, decision=decision)
        run.call = call
        return call
