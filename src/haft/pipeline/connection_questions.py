"""Asks a person about connections to hosts that were not granted, while the connections wait.

The call is in progress meanwhile, and its deadline stands still. Nobody is asked for a call that runs without approval
or as a trial run, nor where nobody can answer: there the sandbox refuses the connection at once. An answer holds for
this host and port until the call ends. A person can also let later calls connect: `policy.host_offers` says which.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from haft import policy
from haft.contracts import (
    NO_CONFINEMENT,
    ApprovalAnswer,
    ApprovalRequest,
    HaftError,
    HeldConnection,
    Principal,
    host_grant,
    restricted_holder,
)
from haft.pipeline import nesting
from haft.pipeline.approval_broker import ApprovalBroker, ReceivedAnswer, approval_request
from haft.pipeline.connections import NOBODY, RunConnections, address_of
from haft.pipeline.deadline import deadlines_paused
from haft.pipeline.run import Run
from haft.values import replace

if TYPE_CHECKING:
    from haft.contracts import HostGrant
    from haft.pipeline.stages.approve import SaveApproval

MAX_QUESTIONS: Final = 20
"""About how many hosts and ports of one run a person is asked. Each question stops the deadline, and takes a person's
time."""


class ConnectionQuestions:
    """Asks about the connections of a host's runs."""

    def __init__(self, broker: ApprovalBroker, save_approval: SaveApproval, seconds: float) -> None:
        """`seconds` is how long a connection waits for an answer; 0 if nobody is asked."""
        self._broker = broker
        self._save_approval = save_approval
        self._seconds = seconds

    async def may_ask(self, run: Run) -> bool:
        """Whether a person is asked about connections of this run. `Sandbox.confine` still asks about none if the whole
        network is granted, or is never granted."""
        decision = run.call.decision
        if self._seconds <= 0 or decision is None or decision.unasked or decision.action == "try" or run.call.trial:
            return False
        if restricted_holder(run.call.rights) is not None:
            return False
        return await self._broker.can_ask_about_connections()

    def connections_of(self, run: Run) -> RunConnections:
        """The observer of a run's connections. All commands of the run share it."""
        if run.connections is None:
            run.connections = RunConnections(run, _Asker(run, self._broker, self._save_approval, self._seconds).ask)
        return run.connections


class _Asker:
    """Asks about the connections of one run: about each host and port only once."""

    def __init__(self, run: Run, broker: ApprovalBroker, save_approval: SaveApproval, seconds: float) -> None:
        self._run = run
        self._broker = broker
        self._save_approval = save_approval
        self._seconds = seconds
        self._turns: dict[tuple[str, int], asyncio.Lock] = {}
        self._answers: dict[tuple[str, int], HostGrant | None] = {}

    async def ask(self, held: HeldConnection) -> HostGrant | None:
        where = held.host, held.port
        if where not in self._turns and len(self._turns) >= MAX_QUESTIONS:
            self._refuse(where, f"nobody was asked, because the call connects to more than {MAX_QUESTIONS} hosts")
            return None
        async with self._turns.setdefault(where, asyncio.Lock()):
            if where not in self._answers:
                self._answers[where] = await self._answer(held)
            return self._answers[where]

    def _refuse(self, where: tuple[str, int], reason: str) -> None:
        assert self._run.connections is not None
        self._run.connections.why_refused[where] = reason

    async def _answer(self, held: HeldConnection) -> HostGrant | None:
        where, named = (held.host, held.port), address_of(held.host, held.port)
        try:
            grant = host_grant(named)
        except ValueError as error:
            self._refuse(where, str(error))
            return None
        if self._run.cancel_requested or self._seconds <= 0:
            return None
        given = await self._ask(held, named)
        if given.answer.approved is not True:
            who = given.answer.who.who if isinstance(given.answer.who, Principal) else "a person"
            said = "" if given.answer.message is None else f": {given.answer.message}"
            reason = f"{who} rejected it{said}" if given.is_from_person else given.answer.message or NOBODY
            self._refuse(where, reason)
            return None
        return grant

    async def _ask(self, held: HeldConnection, named: str) -> ReceivedAnswer:
        run = self._run
        assert run.connections is not None
        request = self._request(held, named)
        facts = {"program": held.program, "request": request.id}
        run.connections.emit("waiting", held.host, held.port, "waits for the answer of a person", **facts)
        # Code of the approver is not part of the tool that made the connection.
        within = nesting.CURRENT.set(None)
        try:
            with deadlines_paused(each.deadline for each in (run, *nesting.callers(run))):
                given = await self._broker.ask_while_running(run, request, self._seconds)
        except HaftError as error:
            given = ReceivedAnswer(ApprovalAnswer(approved=False, message=error.message), "nobody")
        finally:
            nesting.CURRENT.reset(within)
        approved = given.answer.approved is True
        if approved:
            await self._approved(held, request, given.answer)
        run.connections.emit(
            "answered", held.host, held.port, "is approved" if approved else "is refused", approved=approved
        )
        return given

    def _request(self, held: HeldConnection, named: str) -> ApprovalRequest:
        run = self._run
        call = run.call
        confinement = call.confinement or NO_CONFINEMENT
        if run.resolved_confinement is not None:
            confinement = run.resolved_confinement[1]
        reason = f"it wants to connect to {named}, which is not granted"
        request = approval_request(run, confinement, reason)
        is_bare = call.cwd == "." and not call.env
        offered = policy.host_offers(run.tool.spec, call.arguments, named, is_bare=is_bare)
        if call.secrets:  # A remembered rule is stored unmasked, so rules with secrets in them are not offered.
            masked = call.secrets.masked
            offered = tuple(one for one in offered if masked(one.to_json()) == one.to_json())
        return replace(
            request,
            parts=(),
            to_allow=offered,
            definition_diff=None,
            connection=replace(
                held, host=call.secrets.masked_text(held.host), program=call.secrets.masked(held.program)
            ),
            expires_at=self._broker.now() + self._seconds,
        )

    async def _approved(self, held: HeldConnection, request: ApprovalRequest, answer: ApprovalAnswer) -> None:
        """Note who let the connection through, and remember the answer for later calls if it says so."""
        run = self._run
        assert run.connections is not None
        who = answer.who.who if isinstance(answer.who, Principal) else run.call.who
        run.connections.approved_by[held.host, held.port] = f"{who}, who was asked"
        if answer.scope == "once":
            return
        named = address_of(held.host, held.port)
        if answer.scope not in ("thread", "always") or not 0 <= answer.allow < len(request.to_allow):
            run.add_note(
                f"the answer about {named} holds for this call only: the answer names no rule that was offered"
            )
            return
        try:
            told = policy.with_people(request.to_allow[answer.allow].rule, who, run.call.who)
            rule = policy.with_proof(told, answer.rule_proof)
            await self._save_approval(run.call, rule, answer.scope, who)
        except HaftError as error:
            run.add_note(f"the answer about {named} holds for this call only: {error.message}")
