"""Stops: what asks waits for a person, `blocked-on-user`, and ends here when the answer is no or nobody can be asked.

A person may answer with other arguments. These are validated and decided again: what runs is always what was judged. A
yes is bound to the tool's definition as it was shown, and may be remembered for calls like this one. What a rule allows
is bound to the definition with which it first ran.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from haft import policy
from haft.contracts import (
    Action,
    ApprovalAnswer,
    ApprovalRequest,
    Call,
    Confinement,
    Decision,
    Outcome,
    Principal,
    Rejected,
    Scope,
    StorageFailed,
    ToolContext,
    grants_from,
)
from haft.pipeline.approval_broker import ApprovalBroker, request_of, told_of
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements
from haft.pipeline.hooks import preview_of
from haft.pipeline.masking import as_meant
from haft.pipeline.run import Run
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.validate import Validate
from haft.sandbox import IN_PROCESS, REMOTE, Sandbox
from haft.values import replace

Agree = Callable[[Call, Mapping[str, Any] | None, str, str], Awaitable[None]]
"""Keeps that a person agreed to a call's tool as it is, and the rule that holds from now on, if any; by scope and by
the person's name."""
Hold = Callable[[Call], Awaitable[None]]
"""Keeps the tool as it is at the first call that a rule allowed."""


class Approve:
    """Ask whoever can be asked."""

    def __init__(
        self,
        broker: ApprovalBroker,
        agree: Agree,
        hold: Hold,
        validate: Validate,
        decide: Decide,
        sandbox: Sandbox,
        confinements: Confinements,
        previewing: Callable[[Run], ToolContext],
    ) -> None:
        self._previewing = previewing
        self._sandbox = sandbox
        self._confinements = confinements
        self._broker = broker
        self._agree = agree
        self._hold = hold
        self._validate = validate
        self._decide = decide

    @staticmethod
    def passes(run: Run) -> bool:
        """Whether there is nothing to ask, to say or to keep: most calls only read."""
        decision = run.decision
        return decision.action == "allow" and decision.unasked and not run.tool.spec.previews

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        if run.decision.action != "reject" and await self._may_preview(run):
            await self._preview(run)
            if (preview := run.call.preview) is not None:
                run.note("progress", {"message": preview, "fraction": None})
        if run.decision.action == "ask":
            await self._ask(run)
        if run.decision.action == "reject":
            raise Rejected(
                f"`{run.call.name}` was rejected: {run.decision.message or run.decision.reason}",
                hint=_how_to_enable(run.decision),
            )
        if _is_allowed_by_rule(run.decision):
            await self._hold(run.call)
        return await proceed(run)

    async def _may_preview(self, run: Run) -> bool:
        """Nobody has agreed to anything yet: where there is no sandbox, a workspace's own tool is not started."""
        spec = run.tool.spec
        return spec.previews and (spec.provenance != "workspace" or (await self._sandbox.ready()).namespaces)

    async def _preview(self, run: Run) -> None:
        """Let the tool say what the call would do."""
        run.revise(preview=await preview_of(run.call, self._previewing(run)))

    async def _ask(self, run: Run) -> None:
        """Let a person settle the decision; `Rejected` where nobody agreed."""
        decision = run.decision
        confinement = await self._confinement(run)  # Raises where it could not run anyway: nobody need be asked.
        kept = await self._broker.take_unused_approval(run.call)
        if kept is not None:
            return await self._agreed(run, kept)
        if not await self._broker.has_someone():
            self._settle(run, "nobody", "reject", "nobody is there to be asked")
            raise Rejected(
                f"`{run.call.name}` needs approval ({decision.reason}), and nobody is there to be asked",
                hint="approve it with --approve, call it from a terminal, wait for an answer in the inbox with --wait, "
                "or give ToolService an approver",
            )
        run.revise(confinement=confinement)
        request = request_of(run, confinement, decision.reason, withheld=self._sandbox.withheld(run.call, confinement))
        run.turn("blocked-on-user", told_of(request))
        given = await self._broker.ask(run, replace(request, revise=functools.partial(self._revised, run)))
        answer = given.answer
        if answer.approved is not True:
            reason = answer.message or "a person said no"
            self._settle(run, given.by, "reject", reason)
            said = "rejected" if given.by == "person" else "not approved"
            raise Rejected(f"`{run.call.name}` was {said}: {reason}")
        return await self._agreed(run, answer)

    async def _revised(self, run: Run, arguments: Mapping[str, Any]) -> ApprovalRequest:
        """The question that other arguments would raise. The call itself stays what it is."""
        other = run.draft(arguments=as_meant(run.call, arguments))
        await self._validate.judge(other)
        await self._decide.judge(other)
        if await self._may_preview(other):
            await self._preview(other)
        decision = other.decision
        reason = f"a rule rejects it: {decision.reason}" if decision.action == "reject" else decision.reason
        confinement = await self._confinement(other)
        return request_of(other, confinement, reason, withheld=self._sandbox.withheld(other.call, confinement))

    async def _agreed(self, run: Run, answer: ApprovalAnswer) -> None:
        """Make it the call that was agreed to."""
        call = run.call
        try:
            _check(answer)
            grants = grants_from(answer.grants)
            if grants.network and (await self._confinement(run)).never_network:
                raise ValueError("it grants the network, and `sandbox.network` is `never`")
            for name in self._sandbox.unset(grants.env):
                raise ValueError(f"it grants {name}, which is not set where the call runs: set {name} there")
            run.revise(grants=call.grants | grants, secrets=call.secrets | self._sandbox.granted_secrets(grants))
        except ValueError as error:
            reason = f"the approver's answer cannot be followed: {error}"
            self._settle(run, "nobody", "reject", reason)
            raise Rejected(f"`{call.name}` was not approved: {reason}") from error
        said = answer.message or "the approver said yes"
        wanted = call.arguments if answer.arguments is None else as_meant(run.call, answer.arguments)
        if wanted == call.arguments:
            self._settle(run, "person", "allow", await self._remembered(run, answer, said))
            return
        run.revise(arguments=wanted)
        await self._validate.judge(run)
        await self._decide.judge(run)
        if run.decision.action == "reject":
            return
        # Who wrote these arguments has agreed to them.
        said = await self._remembered(run, replace(answer, scope="once"), f"{said}, to other arguments")
        self._settle(run, "person", "try" if run.decision.action == "try" else "allow", said)

    async def _remembered(self, run: Run, answer: ApprovalAnswer, said: str) -> str:
        """Keep what was agreed to. Where it cannot be kept, the yes still holds for this call, and says so."""
        rule, label, offered = None, "", run.decision.to_allow
        if answer.scope != "once":
            if not 0 <= answer.allow < len(offered):
                return f"{said}, this once: nothing like it can be allowed beforehand"
            kept = policy.with_variables(offered[answer.allow], grants_from(answer.grants).env)
            rule, label = kept.rule, kept.label
        try:
            await self._agree(
                run.call, rule, answer.scope, answer.who.who if isinstance(answer.who, Principal) else run.call.who
            )
        except StorageFailed as error:
            return f"{said}, this once: {error.message}"
        if rule is None:
            return said
        return f"{said}, {'in this thread' if answer.scope == 'thread' else 'always'}: {label}"

    async def _confinement(self, run: Run) -> Confinement:
        """What will confine it."""
        hosting = run.tool.spec.hosting
        if hosting in ("in-process", "remote"):
            return IN_PROCESS if hosting == "in-process" else REMOTE
        return await self._confinements.of(run)

    @staticmethod
    def _settle(run: Run, by: str, action: Action, reason: str) -> None:
        decision = replace(
            run.decision,
            action=action,
            layer="approval",
            by="person" if by == "person" else "expiry" if by == "expiry" else "nobody",
            reason=reason,
            unasked=False,
        )
        run.revise(decision=decision)


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
