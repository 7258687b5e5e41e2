"""A stage that may stop a call: a call that needs approval waits here for a person, with the status `blocked-on-user`.
The call ends here if the person rejects it, or if no person can answer.

A person may approve with other arguments. Then haft validates these arguments and decides about the call again, so that
nothing runs without a decision. An approval is bound to the tool's definition as the person saw it, and can be
remembered for similar calls. If a rule allows a tool, the permission is bound to the definition that the tool had at
its first call.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from haft import policy
from haft.contracts import (
    NO_GRANTS,
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
    check_owned,
    evolve,
    grants_from,
    restricted_holder,
)
from haft.pipeline.approval_broker import ApprovalBroker, approval_request, request_content, waiting_facts
from haft.pipeline.chain import Proceed
from haft.pipeline.confinement import Confinements
from haft.pipeline.hooks import preview_of
from haft.pipeline.masking import unmasked_arguments
from haft.pipeline.pauses import asking
from haft.pipeline.run import ApprovedCall, Run
from haft.pipeline.stages.decide import Decide
from haft.pipeline.stages.validate import Validate
from haft.sandbox import IN_PROCESS, REMOTE, Sandbox
from haft.values import replace

if TYPE_CHECKING:
    from haft.pipeline.batch import Batch

SaveApproval = Callable[[Call, Mapping[str, Any] | None, str, str], Awaitable[None]]
"""Saves that a person approved a call and the current definition of its tool. Takes the call, the rule to remember or
None, the scope, and the person's name."""
PinFirstUse = Callable[[Call], Awaitable[None]]
"""Saves the definition of the called tool when a rule allows a call of the tool for the first time."""


class Approve:
    """Waits for a person, if the call needs approval."""

    def __init__(
        self,
        broker: ApprovalBroker,
        save_approval: SaveApproval,
        pin_first_use: PinFirstUse,
        validate: Validate,
        decide: Decide,
        sandbox: Sandbox,
        confinements: Confinements,
        preview_context: Callable[[Run], ToolContext],
    ) -> None:
        self._preview_context = preview_context
        self._sandbox = sandbox
        self._confinements = confinements
        self._broker = broker
        self._save_approval = save_approval
        self._pin_first_use = pin_first_use
        self._validate = validate
        self._decide = decide

    @staticmethod
    def skips(run: Run) -> bool:
        """Whether this stage has nothing to do: the call needs no approval, its tool has no preview, and haft need not
        save the tool's definition. True for most calls, since they only read."""
        decision = run.decision
        return decision.action == "allow" and decision.unasked and not run.tool.spec.previews

    async def __call__(self, run: Run, proceed: Proceed) -> Outcome:
        await self.check(run)
        return await proceed(run)

    async def check(self, run: Run, why_again: str | None = None) -> None:
        """Let a person approve the call if it needs approval. Raises `Rejected` if it was rejected. `why_again` says
        why a call is asked about again that was approved before."""
        if run.decision.action != "reject" and run.tool.spec.previews:
            await self.preview(run)
            if (preview := run.call.preview) is not None:
                run.emit("progress", {"message": preview, "fraction": None})
        if run.decision.action == "ask":
            await self._ask(run, why_again)
        if run.decision.action == "reject":
            raise Rejected(
                f"`{run.call.name}` was rejected: {run.decision.message or run.decision.reason}",
                hint=_how_to_enable(run.decision),
            )
        if _is_allowed_by_rule(run.decision):
            await self._pin_first_use(run.call)

    async def shown_of(self, run: Run) -> Mapping[str, Any]:
        """What a person who approves the call sees of it. `run` may be a draft; its call must be decided."""
        await self.preview(run)
        return request_content(await self._request(run, run.decision.reason))

    async def _may_preview(self, run: Run) -> bool:
        """Whether the tool may run for a preview. Nobody has approved the tool yet, so a tool of the workspace may run
        only in a sandbox."""
        spec = run.tool.spec
        return spec.previews and (spec.provenance != "workspace" or (await self._sandbox.ready()).namespaces)

    async def preview(self, run: Run) -> None:
        """Run the tool's `preview`, and store the line that it returns in the call's field `preview`."""
        if await self._may_preview(run):
            run.revise(preview=await preview_of(run.call, self._preview_context(run)))

    async def _ask(self, run: Run, why_again: str | None = None) -> None:
        """Let a person decide. Raises `Rejected` if nobody approves the call."""
        decision = run.decision
        confinement = await self._confinement(run)  # Raises, before anyone is asked, if the call could not run.
        if run.batch is not None and run in run.batch:
            run.approved = ApprovedCall(run.call, request_content(await self._request(run, decision.reason)))
            await run.batch.learn(run)
        kept = await self._broker.kept_approval(run.call)
        if kept is not None:
            return await self._approved(run, kept)
        if not await self._broker.can_ask(run):
            self._set_decision(run, "nobody", "reject", "nobody can be asked")
            raise Rejected(
                f"`{run.call.name}` needs approval ({decision.reason}), and nobody can be asked",
                hint="approve it with --approve, call it from a terminal, wait for an answer in the inbox with "
                "--wait SECONDS, or give ToolService an approver",
            )
        run.revise(confinement=confinement)
        request = await self._request(run, decision.reason if why_again is None else f"{decision.reason}; {why_again}")
        if run.batch is not None and run in run.batch:
            request = await self._with_batch(run, run.batch, request)
        given = self._broker.earlier_answer(run, request)
        if given is None:
            with asking(run, request.id, request_content(request)):
                run.set_status("blocked-on-user", waiting_facts(request))
                given = await self._broker.ask(run, replace(request, revise=functools.partial(self._request_with, run)))
        if run.batch is not None and run in run.batch:
            run.batch.stop_asking(run)
        answer = given.answer
        if answer.approved is not True:
            reason = answer.message or "a person rejected it"
            self._set_decision(run, given.by, "reject", reason)
            how = "rejected" if given.is_from_person else "not approved"
            raise Rejected(f"`{run.call.name}` was {how}: {reason}")
        return await self._approved(run, answer, given.by)

    async def _with_batch(self, run: Run, batch: Batch, request: ApprovalRequest) -> ApprovalRequest:
        """The request with its batch. Waits until it is known which other calls of the batch need approval, so that
        the person sees them together. A call whose turn has come is asked about alone."""
        together = 1 if batch.member(run).has_arrived else await batch.wait_until_all_known(run)
        return replace(request, batch=(batch.id, together))

    async def _request(self, run: Run, reason: str) -> ApprovalRequest:
        """The request for approval of the call, in the confinement in which it will run."""
        confinement = await self._confinement(run)
        withheld = () if confinement.ungrantable else self._sandbox.withheld(run.call, confinement)
        return approval_request(run, confinement, reason, withheld=withheld)

    async def _request_with(self, run: Run, arguments: Mapping[str, Any]) -> ApprovalRequest:
        """The request for the same call with other arguments. The call itself does not change."""
        other = run.draft(arguments=unmasked_arguments(run.call, arguments))
        await self._validate.check(other)
        await self._decide.decide(other)
        await self.preview(other)
        decision = other.decision
        return await self._request(
            other, f"a rule rejects it: {decision.reason}" if decision.action == "reject" else decision.reason
        )

    async def _approved(self, run: Run, answer: ApprovalAnswer, by: str = "person") -> None:
        """Replace the call by the call that the person approved. `by` says how the person answered."""
        call = run.call
        try:
            _check(answer)
            grants = grants_from(answer.grants)
            check_owned(grants.network)
            holder = restricted_holder(call.rights)
            if holder is not None and grants != NO_GRANTS:
                raise ValueError(f"it grants something, but {holder} gets no grants")
            if grants.network and (await self._confinement(run)).never_network:
                raise ValueError("it grants the network, but `sandbox.network` is `never`")
            for name in self._sandbox.unset(grants.env):
                raise ValueError(f"it grants {name}, which is not set where the call runs: set {name} there")
            run.revise(grants=call.grants | grants, secrets=call.secrets | self._sandbox.granted_secrets(grants))
        except ValueError as error:
            reason = f"the approver's answer is not valid: {error}"
            self._set_decision(run, "nobody", "reject", reason)
            raise Rejected(f"`{call.name}` was not approved: {reason}") from error
        if restricted_holder(call.rights) is not None and answer.scope == "always":
            answer = replace(answer, scope="thread")  # No other answer counts for these calls.
        reason = answer.message or "the approver approved it"
        arguments = call.arguments if answer.arguments is None else unmasked_arguments(run.call, answer.arguments)
        if arguments == call.arguments:
            self._set_decision(run, by, "allow", await self._save_answer(run, answer, reason))
            return
        run.revise(arguments=arguments)
        await self._validate.check(run)
        await self._decide.decide(run)
        if run.decision.action == "reject":
            return
        if run.approved is not None:
            asked = evolve(run.approved.call, arguments=run.call.arguments)
            run.approved = ApprovedCall(asked, await self.shown_of(run.draft(grants=asked.grants)))
        # The person wrote these arguments, so they need no further approval.
        reason = await self._save_answer(run, replace(answer, scope="once"), f"{reason}, with other arguments")
        self._set_decision(run, "person", "try" if run.decision.action == "try" else "allow", reason)

    async def _save_answer(self, run: Run, answer: ApprovalAnswer, reason: str) -> str:
        """Save the approval, and return `reason` with the scope of the approval added, such as `always`. If the
        approval cannot be saved, it still holds for this call, and the returned reason says so."""
        rule, label, offered = None, "", run.decision.to_allow
        if answer.scope != "once":
            if not 0 <= answer.allow < len(offered):
                return f"{reason}, this once: no rule can allow such calls in advance"
            kept = policy.with_variables(offered[answer.allow], grants_from(answer.grants).env)
            told = policy.with_people(kept.rule, _name_of(answer, run), run.call.who)
            rule, label = policy.with_proof(told, answer.rule_proof), kept.label
        try:
            await self._save_approval(run.call, rule, answer.scope, _name_of(answer, run))
        except StorageFailed as error:
            return f"{reason}, this once: {error.message}"
        if rule is None:
            return reason
        return f"{reason}, {'in this thread' if answer.scope == 'thread' else 'always'}: {label}"

    async def _confinement(self, run: Run) -> Confinement:
        """The confinement in which the call will run."""
        hosting = run.tool.spec.hosting
        if hosting in ("in-process", "remote"):
            outside = IN_PROCESS if hosting == "in-process" else REMOTE
            holder = restricted_holder(run.call.rights)
            return outside if holder is None else evolve(outside, ungrantable=holder)
        return await self._confinements.of(run)

    @staticmethod
    def _set_decision(run: Run, by: str, action: Action, reason: str) -> None:
        decision = replace(
            run.decision,
            action=action,
            layer="approval",
            by=by,
            reason=reason,
            unasked=False,
        )
        run.revise(decision=decision)


def _is_allowed_by_rule(decision: Decision) -> bool:
    """Whether a rule allowed the call in advance, or a delegate did (a program that a rule lets decide). False for a
    trial run, because a person decides after the run."""
    return decision.action == "allow" and decision.by in ("rule", "delegate") and not decision.unasked


def _name_of(answer: ApprovalAnswer, run: Run) -> str:
    """Who gave an answer."""
    return answer.who.who if isinstance(answer.who, Principal) else run.call.who


def _check(answer: ApprovalAnswer) -> None:
    """Raise `ValueError` if an approver's answer has a field with a wrong value."""
    if answer.scope not in get_args(Scope):
        raise ValueError(f"`scope` is {answer.scope!r}, and must be one of {', '.join(get_args(Scope))}")
    if not isinstance(answer.allow, int):
        raise ValueError(f"`allow` is {answer.allow!r}, and must be a number")  # noqa: TRY004  all raise the same
    if answer.arguments is not None and not isinstance(answer.arguments, Mapping):
        raise ValueError("`arguments` must be a table")


def _how_to_enable(decision: Decision) -> str | None:
    if decision.layer == "enablement":
        return "`haft config show` says where that is set"
    return f"the rule is in {decision.source}" if decision.layer == "rules" else None
