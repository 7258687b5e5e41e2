"""Stops: what asks waits for a person, `blocked-on-user`, and ends here when the answer is no or nobody can be asked.

A person may answer with other arguments. These are validated and decided again: what runs is always what was judged. A
yes is bound to the tool's definition as it was shown, and may be remembered for calls like this one. What a rule allows
is bound to the definition with which it first ran.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from haft.contracts import (
    Action,
    ApprovalAnswer,
    ApprovalRequest,
    Call,
    Decision,
    Outcome,
    Rejected,
    RunId,
    Scope,
    StorageFailed,
    ToolContext,
    Walls,
    grants_from,
    revised,
)
from haft.pipeline.chain import Proceed
from haft.pipeline.desk import Desk, request_of, to_answer, told_of
from haft.pipeline.hooks import preview_of
from haft.pipeline.masking import as_meant
from haft.pipeline.run import Run
from haft.pipeline.stages.confine import granted, thread_of
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.validate import Validate
from haft.policy.allowable import with_variables
from haft.sandbox import IN_PROCESS, Sandbox

Agree = Callable[[Call, Mapping[str, Any] | None, str], Awaitable[None]]
"""Keeps that a person agreed to a call's tool as it is, and the rule that holds from now on, if any; by scope."""
Hold = Callable[[Call], Awaitable[None]]
"""Keeps the tool as it is at the first call that a rule allowed."""


class Approve:
    """Ask whoever can be asked."""

    def __init__(
        self,
        live: Mapping[RunId, Run],
        desk: Desk,
        agree: Agree,
        hold: Hold,
        validate: Validate,
        decide: Decide,
        sandbox: Sandbox,
        previewing: Callable[[Run], ToolContext],
    ) -> None:
        self._previewing = previewing
        self._sandbox = sandbox
        self._live = live
        self._desk = desk
        self._agree = agree
        self._hold = hold
        self._validate = validate
        self._decide = decide

    async def __call__(self, call: Call, proceed: Proceed) -> Outcome:
        assert call.decision is not None
        assert call.tool is not None
        if call.decision.action != "reject" and await self._may_preview(call):
            call = await self._previewed(call)
        if call.decision is not None and call.decision.action == "ask":
            call = await self._ask(call)
        if call.decision is not None and call.decision.action == "reject":
            raise Rejected(
                f"`{call.name}` was rejected: {call.decision.message or call.decision.reason}",
                hint=_how_to_enable(call.decision),
            )
        if call.decision is not None and _is_allowed_by_rule(call.decision):
            await self._hold(call)
        return await proceed(call)

    async def _may_preview(self, call: Call) -> bool:
        """Nobody has agreed to anything yet: where no walls stand, a workspace's own tool is not started."""
        assert call.tool is not None
        spec = call.tool.spec
        return spec.previews and (spec.provenance != "workspace" or (await self._sandbox.ready()).namespaces)

    async def _previewed(self, call: Call) -> Call:
        """The call with what its tool says that it would do."""
        run = self._live[call.run]
        preview = await preview_of(call, self._previewing(run))
        if preview is not None:
            call = revised(call, preview=preview)
            run.call = call
            run.note("progress", {"message": preview, "fraction": None})
        return call

    async def _ask(self, call: Call) -> Call:
        """The call as a person agreed to it; `Rejected` where nobody did."""
        run = self._live[call.run]
        decision = call.decision
        assert decision is not None
        walls = await self._walls(call, decision)  # Raises where it could not run anyway: nobody need be asked.
        kept = await self._desk.kept_yes(call)
        if kept is not None:
            return await self._agreed(run, call, replace(to_answer(kept), scope="once"))
        if not await self._desk.has_someone():
            self._settle(run, call, "nobody", "reject", "nobody is there to be asked")
            raise Rejected(
                f"`{call.name}` needs approval ({decision.reason}), and nobody is there to be asked",
                hint="approve it with --approve, call it from a terminal, wait for an answer in the inbox with --wait, "
                "or give ToolService an approver",
            )
        call = revised(call, walls=walls)
        request = request_of(call, walls, decision.reason, withheld=self._sandbox.withheld(call, walls))
        run.turn("blocked-on-user", call, told_of(request))
        given = await self._desk.ask(call, replace(request, revise=functools.partial(self._revised, run, call)))
        answer = given.answer
        if answer.approved is not True:
            reason = answer.message or "a person said no"
            self._settle(run, call, given.by, "reject", reason)
            raise Rejected(f"`{call.name}` was {'rejected' if given.by == 'person' else 'not approved'}: {reason}")
        return await self._agreed(run, call, answer)

    async def _revised(self, run: Run, call: Call, arguments: Mapping[str, Any]) -> ApprovalRequest:
        """The question that other arguments would raise. The call itself stays what it is."""
        try:
            other = await self._validate.judge(revised(call, arguments=as_meant(call, arguments)))
            other = await self._decide.judge(other)
            if await self._may_preview(other):
                other = revised(other, preview=await preview_of(other, self._previewing(run)))
        finally:
            run.call = call
        assert other.decision is not None
        decision = other.decision
        reason = f"a rule rejects it: {decision.reason}" if decision.action == "reject" else decision.reason
        walls = await self._walls(other, decision)
        return request_of(other, walls, reason, withheld=self._sandbox.withheld(other, walls))

    async def _agreed(self, run: Run, call: Call, answer: ApprovalAnswer) -> Call:
        """The call as it was agreed to."""
        assert call.decision is not None
        try:
            _check(answer)
            grants = grants_from(answer.grants)
            if grants.network and (await self._walls(call, call.decision)).never_network:
                raise ValueError("it grants the network, and `sandbox.network` is `never`")
            for name in self._sandbox.unset(grants.env):
                raise ValueError(f"it grants {name}, which is not set where the call runs: set {name} there")
            secrets = call.secrets | self._sandbox.granted_secrets(grants)
            call = revised(call, grants=call.grants | grants, secrets=secrets)
        except ValueError as error:
            reason = f"the approver's answer cannot be followed: {error}"
            self._settle(run, call, "nobody", "reject", reason)
            raise Rejected(f"`{call.name}` was not approved: {reason}") from error
        said = answer.message or "the approver said yes"
        wanted = call.arguments if answer.arguments is None else as_meant(call, answer.arguments)
        if wanted == call.arguments:
            said = await self._remembered(call, answer, said)
            return self._settle(run, call, "person", "allow", said)
        edited = revised(call, arguments=wanted)
        edited = await self._decide.judge(await self._validate.judge(edited))
        if edited.decision is not None and edited.decision.action == "reject":
            return edited
        # Who wrote these arguments has agreed to them.
        said = await self._remembered(edited, replace(answer, scope="once"), f"{said}, to other arguments")
        action: Action = "try" if edited.decision is not None and edited.decision.action == "try" else "allow"
        return self._settle(run, edited, "person", action, said)

    async def _remembered(self, call: Call, answer: ApprovalAnswer, said: str) -> str:
        """Keep what was agreed to. Where it cannot be kept, the yes still holds for this call, and says so."""
        assert call.decision is not None
        rule, label, offered = None, "", call.decision.to_allow
        if answer.scope != "once":
            if not 0 <= answer.allow < len(offered):
                return f"{said}, this once: nothing like it can be allowed beforehand"
            kept = with_variables(offered[answer.allow], grants_from(answer.grants).env)
            rule, label = kept.rule, kept.label
        try:
            await self._agree(call, rule, answer.scope)
        except StorageFailed as error:
            return f"{said}, this once: {error.message}"
        if rule is None:
            return said
        return f"{said}, {'in this thread' if answer.scope == 'thread' else 'always'}: {label}"

    async def _walls(self, call: Call, decision: Decision) -> Walls:
        """What will confine it."""
        assert call.tool is not None
        if call.tool.spec.hosting == "in-process":
            return IN_PROCESS
        if call.tool.spec.hosting == "session":
            return await self._sandbox.confine_session(call.tool.spec.grants)
        return await self._sandbox.confine(
            decision.profile,
            granted(call),
            neutral=decision.neutral,
            unasked=decision.unasked,
            activated=decision.activated,
            thread=thread_of(call),
        )

    @staticmethod
    def _settle(run: Run, call: Call, by: str, action: Action, reason: str) -> Call:
        asked = call.decision
        assert asked is not None
        decision = replace(
            asked,
            action=action,
            layer="approval",
            by="person" if by == "person" else "expiry" if by == "expiry" else "nobody",
            reason=reason,
            unasked=False,
        )
        call = revised(call, decision=decision)
        run.call = call
        return call


def _is_allowed_by_rule(decision: Decision) -> bool:
    """Whether somebody allowed it beforehand. What is tried first is not: that asks afterwards."""
    return decision.action == "allow" and decision.by in ("rule", "delegate") and not decision.unasked


def _check(answer: ApprovalAnswer) -> None:
    """`ValueError` where an approver answered what nobody can act on."""
    if answer.scope not in get_args(Scope):
        raise ValueError(f"its scope is {answer.scope!r}, and it must be one of {', '.join(get_args(Scope))}")
    if not isinstance(answer.allow, int):
        raise ValueError(f"it allows {answer.allow!r}, which is no number")  # noqa: TRY004  all raise the same
    if answer.arguments is not None and not isinstance(answer.arguments, Mapping):
        raise ValueError("its arguments are no table")


def _how_to_enable(decision: Decision) -> str | None:
    if decision.layer == "enablement":
        return "`haft config show` says where that is set"
    return f"that is written in {decision.source}" if decision.layer == "rules" else None
