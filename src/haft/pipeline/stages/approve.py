"""Stops: what asks waits for a person, `blocked-on-user`, and ends here when the answer is no or nobody can be asked.

A person may answer with other arguments. These are validated and decided again: what runs is always what was judged.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import replace

from haft.contracts import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    Call,
    Decision,
    Outcome,
    Rejected,
    RunId,
    Walls,
    grants_from,
    own_copy,
    revised,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.foreign import Foreign
from haft.pipeline.run import Run
from haft.pipeline.stages.confine import granted
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.validate import Validate
from haft.sandbox import IN_PROCESS, Sandbox


class Approve:
    """Ask whoever can be asked."""

    def __init__(
        self,
        live: Mapping[RunId, Run],
        approver: Approver | None,
        validate: Validate,
        decide: Decide,
        foreign: Foreign,
        sandbox: Sandbox,
    ) -> None:
        self._sandbox = sandbox
        self._foreign = foreign
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
        """The call as a person agreed to it; `Rejected` where nobody did."""
        run = self._live[call.run]
        decision = call.decision
        assert decision is not None
        walls = await self._walls(call, decision)  # Raises where it could not run anyway: nobody need be asked.
        if self._approver is None:
            self._settle(run, call, "nobody", approved=False, reason="nobody is there to be asked")
            raise Rejected(
                f"`{call.name}` needs approval ({decision.reason}), and nobody is there to be asked",
                hint="approve it with --approve, call it from a terminal, or give ToolService an approver",
            )
        call = revised(call, walls=walls)
        run.turn("blocked-on-user", call)
        try:
            given = await self._foreign.held(_answer(self._approver, _request(call, decision, walls)))
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            reason = f"the approver failed: {type(error).__name__}: {error}"
            self._settle(run, call, "nobody", approved=False, reason=reason)
            raise Rejected(f"`{call.name}` was not approved: {reason}") from error
        answer = given if isinstance(given, ApprovalAnswer) else ApprovalAnswer(approved=given is True)
        if answer.approved is not True:
            reason = answer.message or "a person said no"
            self._settle(run, call, "person", approved=False, reason=reason)
            raise Rejected(f"`{call.name}` was rejected: {reason}")
        try:
            call = revised(call, grants=call.grants | grants_from(answer.grants))
        except ValueError as error:
            reason = f"the approver's grants cannot be understood: {error}"
            self._settle(run, call, "nobody", approved=False, reason=reason)
            raise Rejected(f"`{call.name}` was not approved: {reason}") from error
        if answer.arguments is None or answer.arguments == call.arguments:
            return self._settle(run, call, "person", approved=True, reason=answer.message or "the approver said yes")
        edited = revised(call, arguments=own_copy(answer.arguments))
        edited = await self._decide.judge(await self._validate.judge(edited))
        if edited.decision is not None and edited.decision.action == "reject":
            return edited
        # Who wrote these arguments has agreed to them.
        reason = f"{answer.message or 'the approver said yes'}, to other arguments"
        return self._settle(run, edited, "person", approved=True, reason=reason)

    async def _walls(self, call: Call, decision: Decision) -> Walls:
        """What will confine it."""
        assert call.tool is not None
        if call.tool.spec.hosting == "in-process":
            return IN_PROCESS
        return await self._sandbox.confine(decision.profile, granted(call), neutral=decision.neutral)

    @staticmethod
    def _settle(run: Run, call: Call, by: str, *, approved: bool, reason: str) -> Call:
        asked = call.decision
        assert asked is not None
        decision = replace(
            asked,
            action="allow" if approved else "reject",
            layer="approval",
            by="person" if by == "person" else "nobody",
            reason=reason,
        )
        call = revised(call, decision=decision)
        run.call = call
        return call


async def _answer(approver: Approver, request: ApprovalRequest) -> object:
    given = approver(request)
    return await given if inspect.isawaitable(given) else given


def _request(call: Call, decision: Decision, walls: Walls) -> ApprovalRequest:
    assert call.tool is not None
    return ApprovalRequest(
        run=call.run,
        tool=call.name,
        description=call.tool.spec.description,
        # A copy: what was shown cannot be changed behind the person's back.
        arguments=own_copy(call.arguments),
        reason=decision.reason,
        who=call.who,
        thread=call.thread,
        cwd=call.cwd,
        env=dict(call.env),
        timeout=call.timeout,
        walls=walls,
    )
