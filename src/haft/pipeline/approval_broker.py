"""Gets the answer to a request for approval: from the approver of this host, or from another process through the inbox.
The first answer wins.

If the approver answers at once, the inbox is not used. If the approver takes longer, or there is none, the broker
writes the request into the inbox on disk, where any process can answer it, and reads the inbox several times a second.
If there is no approver, the request expires after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from haft import policy
from haft.contracts import (
    NO_GRANTS,
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    BadApprover,
    BadBatchApprover,
    Call,
    Confinement,
    HaftError,
    HostId,
    NotCovered,
    OwnCall,
    Principal,
    RunId,
    Unanswered,
    grants_from,
    own_copy,
)
from haft.pipeline import nesting
from haft.pipeline.masking import masked_for_person
from haft.pipeline.pauses import digest_of_request, outlives_host
from haft.pipeline.run import Run
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.policy import Answered, Inbox, Waiting

T = TypeVar("T")
RecordAnswer = Callable[[Call, Principal, str | None, ApprovalAnswer, ApprovalRequest | None], None]
"""Records in the audit log who answered which request, and how. The second text is the id of the request; the request
itself is None if its host has died."""

INSTANT_SECONDS: Final = 0.05
"""If the approver has not answered after this time, the request goes into the inbox too."""
POLL_SECONDS: Final = 0.1
MAX_PURPOSE: Final = 2_000
MIN_WAIT_SECONDS: Final = 60.0
"""A request can be answered for at least this long after its host died."""
NO_INPUT: Final = "nobody answered: the input of the prompt ended"


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer, and where it came from."""

    answer: ApprovalAnswer
    by: str
    """`person`, `nobody`, `expiry`, or `client NAME`: a person answered through this MCP client."""

    @property
    def is_from_person(self) -> bool:
        return self.by not in ("nobody", "expiry")


class SharedInbox(Protocol):
    """The inbox, with the methods that the broker needs. Work on the inbox runs in a thread, one piece at a time."""

    def use(self, work: Callable[[Inbox], T]) -> Awaitable[T]: ...

    def is_alive(self, host: HostId) -> bool: ...

    def may_have_approval(self, fingerprint: str) -> bool:
        """A quick check whether an approval is stored for this call. False is certain; True means that there may be
        one."""
        ...


class AnswerCheck(Protocol):
    """Checks answers of other processes, if a person has set an approval passphrase."""

    @property
    def needs_proof(self) -> bool:
        """Whether answers from outside the asking terminal need a proof. Answers through a client have none."""
        ...

    def problem(self, request: str, answered: Answered) -> str | None:
        """Why an answer does not count; None if it counts."""
        ...


RecordRefusal = Callable[[Call, str, str], None]
"""Records in the audit log that an answer did not count: for which call and request, and why."""


class ApprovalBroker:
    """Asks for approval, and waits for the answer."""

    def __init__(
        self,
        approver: Approver | None,
        inbox: SharedInbox | None,
        untrusted: UntrustedCalls,
        host: HostId,
        workspace: str,
        wait_seconds: float,
        is_inbox_hidden: Callable[[], Awaitable[bool]],
        person: Principal,
        record_answer: RecordAnswer,
        *,
        approves_connections: bool = False,
        answers_questions: bool = False,
        trusted_clients: Collection[str] = (),
        checks: AnswerCheck | None = None,
        record_refusal: RecordRefusal | None = None,
        person_behind: Callable[[Principal], str | None] = lambda principal: principal.who,
        four_eyes: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`approves_connections`: whether the approver also answers requests about connections. `answers_questions`:
        whether it also answers questions of tools. `trusted_clients`: the MCP clients through which a person may also
        approve dangerous calls and changed definitions. `checks`: checks answers of other processes; with
        `record_refusal`, those that do not count are recorded. `four_eyes`: nobody may approve calls of their own, and
        `person_behind` says who makes a call, or for whom an agent makes it. `now`: the clock by which requests
        expire."""
        self.now = now
        self._person_behind = person_behind
        self._four_eyes = four_eyes
        self._needs_proof = checks is not None and checks.needs_proof
        self._checks = checks
        self._record_refusal = record_refusal
        self._approves_connections = approves_connections
        self.answers_questions = answers_questions and approver is not None
        self._trusted_clients = () if self._needs_proof else trusted_clients
        self._is_inbox_hidden = is_inbox_hidden
        self._person = person
        self._record = record_answer
        self._approver = approver
        self._inbox = inbox
        self._untrusted = untrusted
        self._host = host
        self._workspace = workspace
        self._wait_seconds = wait_seconds

    @property
    def has_inbox(self) -> bool:
        """Whether requests may wait in an inbox."""
        return self._inbox is not None and self._wait_seconds > 0

    async def can_ask(self, run: Run | None = None) -> bool:
        """Whether anyone can answer at all. The program that made the call can always be asked about a `run` that
        pauses, and about one whose call is attached to a process outside: see `Attachment.approve`."""
        if run is not None and (run.pausing is not None or run.call.attachment is not None):
            return True
        has_approver = self._approver is not None and (run is None or not self._is_own(run.call, self._person))
        return has_approver or (self._wait_seconds > 0 and await self._usable_inbox() is not None)

    async def can_ask_about_connections(self) -> bool:
        """Whether anyone can answer requests about connections. An approver that only knows requests about calls would
        open hosts without looking at them, so it is not asked."""
        return self._approves_connections if self._approver is not None else await self.can_ask()

    def _is_own(self, call: Call, principal: Principal) -> bool:
        """Whether this principal may not approve the call, because it is their own."""
        return self._four_eyes and not _people(principal, self._person_behind).isdisjoint(
            _people(call.principal, self._person_behind)
        )

    async def _usable_inbox(self) -> SharedInbox | None:
        """The inbox; None if a tool could reach the inbox, and so approve its own call."""
        return self._inbox if await self._is_inbox_hidden() else None

    async def kept_approval(self, call: Call) -> ApprovalAnswer | None:
        """The stored approval for exactly this call, which a person gave after the host that asked had died; None if
        there is none."""
        fingerprint = self._fingerprint(call)
        if self._inbox is None or not self._inbox.may_have_approval(fingerprint):
            return None
        shared = await self._usable_inbox()
        if shared is None:
            return None
        found = await shared.use(lambda inbox: inbox.take_unused_approval(fingerprint, shared.is_alive))
        if found is None or found.answer is None or not self._counts(call, found.id, found.answer):
            return None
        return self._record_answer(call, found.id, replace(to_answer(found.answer), scope="once"))

    def earlier_answer(self, run: Run, request: ApprovalRequest) -> ReceivedAnswer | None:
        """The answer to the same request that an earlier host made, for a run that this host has taken over; None if
        nobody has answered it, or if the call shows something else now. When this returns, the answer is in the audit
        log."""
        pausing = run.pausing
        if pausing is None or (resumed := pausing.resumed) is None:
            return None
        pausing.resumed = None
        if digest_of_request(request_content(request)) != resumed.asked.digest:
            return None
        if resumed.answered is not None and self._counts(run.call, resumed.asked.request, resumed.answered):
            given = to_answer(resumed.answered)
        elif resumed.answer is not None:
            given = resumed.answer
        else:
            return None
        return self._recorded(run.call, replace(request, id=resumed.asked.request), ReceivedAnswer(given, "person"))

    async def ask(self, run: Run, request: ApprovalRequest) -> ReceivedAnswer:
        """Wait for an answer. Cancelling withdraws the request. While the run waits, the runs that wait for it hold no
        place in the queue. When this returns, a person's answer is in the audit log. Raises `NeedsPerson` if an agent
        approved."""
        with nesting.waits_for_person(run):
            if run.parent is None:
                given = await self._answer(run, request)
            else:
                async with nesting.callers_paused(run):
                    given = await self._answer(run, request)
        return self._recorded(run.call, request, given)

    async def ask_while_running(self, run: Run, request: ApprovalRequest, seconds: float) -> ReceivedAnswer:
        """Like `ask`, for a request of a call in progress: the run and its callers keep their places in the queue. The
        request expires after `seconds` seconds, also if the approver has not answered."""
        with nesting.waits_for_person(run):
            given = await self._answer(run, request, seconds)
        return self._recorded(run.call, request, given)

    def _recorded(self, call: Call, request: ApprovalRequest, given: ReceivedAnswer) -> ReceivedAnswer:
        if not given.is_from_person:
            return given
        return replace(given, answer=self._record_answer(call, request.id, given.answer, request))

    def _record_answer(
        self, call: Call, name: str | None, answer: ApprovalAnswer, request: ApprovalRequest | None = None
    ) -> ApprovalAnswer:
        principal = self._person.acting(answer.who)
        if answer.approved:
            principal.must_be_person("approve")
            if (request is None or request.question is None) and self._is_own(call, principal):
                raise OwnCall(principal.who, f"the call `{call.name}`")
        self._record(call, principal, name, answer, request)
        return replace(answer, who=principal)

    async def _answer(self, run: Run, request: ApprovalRequest, seconds: float | None = None) -> ReceivedAnswer:
        """The answer to a request. With `seconds`, the request expires after this time, whoever could answer."""
        asked = self._approver_of(run, request)
        approver = _ApproverTask(self._untrusted, asked, self._trusted_clients, may_last=not self._needs_proof)
        if asked is not None and run.pausing is None:
            approver.begin(replace(request, client_may_approve=False, to_allow=()) if self._needs_proof else request)
            given = await approver.wait(INSTANT_SECONDS)
            if given is not None:
                return given
        try:
            shared = await self._usable_inbox()
            if shared is None and asked is None:
                return ReceivedAnswer(ApprovalAnswer(approved=False, message="nobody can be asked"), "nobody")
            if shared is None:
                if run.pausing is not None:
                    approver.begin(request)
                return await _within(seconds, approver.result())
            return await self._wait_with_inbox(run, request, approver, shared, seconds)
        finally:
            await approver.stop()

    def _approver_of(self, run: Run, request: ApprovalRequest) -> Approver | None:
        """Who answers this request, besides people in the inbox."""
        if run.pausing is not None and request.connection is None and request.question is None:
            return functools.partial(run.pausing.pauses.ask, outlives_host=outlives_host(run))
        if request.question is None and self._is_own(run.call, self._person):
            return None
        call, ask_together = run.call, getattr(self._approver, "approve_batch", None)
        if ask_together is not None and run.batch is not None and request.batch is not None and request.batch[1] > 1:
            question = run.batch.question
            return lambda request: question.answer(request, ask_together)
        if call.attachment is not None:
            is_about_call = request.diff is None and request.build is None and request.connection is None
            return call.attachment.approve if is_about_call and request.question is None else None
        return self._approver if request.question is None or self.answers_questions else None

    async def _wait_with_inbox(
        self,
        run: Run,
        request: ApprovalRequest,
        approver: _ApproverTask,
        shared: SharedInbox,
        seconds: float | None,
    ) -> ReceivedAnswer:
        call, now = run.call, self.now()
        is_bound = call.attachment is None and run.pausing is None
        is_own = request.question is None and self._is_own(call, self._person)
        has_approver = self._approver is not None and not is_own if is_bound else approver.is_asked
        may_prolong = has_approver and seconds is None
        lasts = max(self._wait_seconds, MIN_WAIT_SECONDS) if may_prolong else self._wait_seconds
        lasts = lasts if seconds is None else seconds
        shown = request_content(request)
        if self._four_eyes and request.question is None:
            shown["notBy"] = sorted(_people(call.principal, self._person_behind))
        waiting = policy.Waiting(
            id=request.id or policy.new_request_id(),
            run=call.run,
            host=self._host,
            workspace=self._workspace,
            who=call.who,
            thread=call.thread,
            created_at=now,
            expires_at=policy.NEVER if outlives_host(run) else now + lasts,
            tried=request.diff is not None,
            fingerprint=self._fingerprint(call, request, run.id if outlives_host(run) else None),
            shown=shown,
        )
        try:
            await shared.use(lambda inbox: inbox.put(waiting))
            if run.pausing is not None and approver.is_asked:
                approver.begin(request)
            return await self._first_answer(call, waiting, approver, shared, lasts, may_prolong=may_prolong)
        except BaseException:
            if run.pausing is not None and run.pausing.stays_open:
                raise  # The request can be answered until another host goes on with the run.
            with contextlib.suppress(HaftError):
                await asyncio.shield(_as_coroutine(shared.use(lambda inbox: inbox.end(waiting.id))))
            raise

    async def _first_answer(
        self,
        call: Call,
        waiting: Waiting,
        approver: _ApproverTask,
        shared: SharedInbox,
        lasts: float,
        *,
        may_prolong: bool,
    ) -> ReceivedAnswer:
        expires_at = waiting.expires_at
        while True:
            given = await approver.wait(POLL_SECONDS)
            if given is not None:
                end = functools.partial(policy.Inbox.end, name=waiting.id, answered=self._told(waiting, given))
                if await shared.use(end):
                    return given
            answered = await shared.use(lambda inbox: inbox.answer_to(waiting.id))
            is_question = waiting.shown.get("question") is not None
            if answered is not None and not self._counts(call, waiting.id, answered, is_question=is_question):
                await shared.use(lambda inbox: inbox.reopen(waiting.id))
            elif answered is not None:
                seen = await shared.use(lambda inbox: _digest_now(inbox, waiting))
                await shared.use(lambda inbox: inbox.end(waiting.id, "taken"))
                return _inbox_answer(answered, seen)
            now = self.now()
            if not may_prolong and now >= expires_at:
                if await shared.use(lambda inbox: inbox.end(waiting.id)):
                    return ReceivedAnswer(ApprovalAnswer(approved=False, message=_expired(lasts)), "expiry")
            elif may_prolong and expires_at < policy.NEVER and now > expires_at - lasts / 2:
                expires_at = now + lasts
                await shared.use(lambda inbox, until=expires_at: inbox.prolong(waiting.id, until))  # type: ignore[misc]

    def _told(self, waiting: Waiting, given: ReceivedAnswer) -> Answered | None:
        """The approver's answer as the inbox keeps it, for those who answer too late; None if nobody answered."""
        if not given.is_from_person:
            return None
        answer, principal = given.answer, self._person.acting(given.answer.who)
        return policy.Answered(
            approved=answer.approved,
            who=principal.who,
            seen=waiting.digest,
            at=self.now(),
            scope=answer.scope,
            thread=principal.thread,
            kind=principal.kind,
            paths=[*answer.paths] or None,
        )

    def _counts(self, call: Call, request: str, answered: Answered, *, is_question: bool = False) -> bool:
        """Whether an answer of another process counts. One that does not is recorded in the audit log."""
        problem = None if self._checks is None else self._checks.problem(request, answered)
        if answered.approved and not is_question and self._is_own(call, answered.principal):
            problem = "`approval.four_eyes` is set, and it is a call of the person who approved it"
        if problem is not None and self._record_refusal is not None:
            self._record_refusal(call, request, problem)
        return problem is None

    def _fingerprint(self, call: Call, request: ApprovalRequest | None = None, only_for: RunId | None = None) -> str:
        """The digest of what an approval is valid for. `only_for`: it is valid for this run alone."""
        decision = call.decision
        # The fingerprints of a build and of a connection differ from that of the call, so that approving one of them
        # does not approve the call.
        part: dict[str, Any] = {}
        if request is not None and request.build is not None:
            part = {"build": request.pin}
        elif request is not None and request.connection is not None:
            part = {"connection": request.connection.to_json()}
        elif request is not None and request.question is not None:
            part = {"question": request.question.to_json()}
        if only_for is not None:
            part["run"] = only_for
        if call.rights:  # Else the digest stays what it was in earlier versions, which may have stored an approval.
            part["rights"] = [[each.holder, each.readonly, each.restricted] for each in call.rights]
        return policy.fingerprint_of(
            {
                **part,
                "workspace": self._workspace,
                "tool": call.name,
                "pin": decision.pin if decision is not None else None,
                "arguments": own_copy(call.arguments),
                "cwd": call.cwd,
                "env": dict(call.env),
                "config": dict(call.config),
                "grants": call.grants.to_json(),
                "trial": call.trial,
                "subagent": call.subagent,
            }
        )


class _ApproverTask:
    """Runs the approver in a task, so that the broker can wait for it with a timeout, and stop it."""

    def __init__(
        self,
        untrusted: UntrustedCalls,
        approver: Approver | None,
        trusted_clients: Collection[str],
        *,
        may_last: bool = True,
    ) -> None:
        """`may_last`: whether an answer may make a rule for later calls. Otherwise it holds once."""
        self._may_last = may_last
        self._trusted_clients = trusted_clients
        self._untrusted = untrusted
        self._approver = approver
        self._task: asyncio.Task[ReceivedAnswer] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether there is an approver to answer the request."""
        return self._approver is not None

    def begin(self, request: ApprovalRequest) -> None:
        self._task = asyncio.ensure_future(self._ask(request))

    async def wait(self, seconds: float) -> ReceivedAnswer | None:
        """The answer, or None if it does not come in time."""
        if self._task is None:
            await asyncio.sleep(seconds)
            return None
        try:
            done, _ = await asyncio.wait({self._task}, timeout=seconds)
        except asyncio.CancelledError:
            await self.stop()
            raise
        return self._task.result() if done else None

    async def result(self) -> ReceivedAnswer:
        assert self._task is not None
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Cancel the approver, because its answer is no longer needed."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
        if task is not None and not task.cancelled():
            task.exception()  # Otherwise the loop warns that nobody retrieved the exception of this answer.

    async def _ask(self, request: ApprovalRequest) -> ReceivedAnswer:
        assert self._approver is not None
        try:
            given = await self._untrusted.guard(_answer(self._approver, request))
        except (asyncio.CancelledError, KeyboardInterrupt, NotCovered, BadBatchApprover):
            raise
        except Unanswered as error:
            return ReceivedAnswer(ApprovalAnswer(approved=False, message=str(error)), "expiry")
        except BaseException as error:
            is_end_of_input = type(error) is EOFError  # A subclass means something else, such as a lost connection.
            reason = NO_INPUT if is_end_of_input else f"the approver failed: {type(error).__name__}: {error}"
            return ReceivedAnswer(ApprovalAnswer(approved=False, message=reason), "nobody")
        if isinstance(given, bool):
            given = ApprovalAnswer(approved=given)
        if not isinstance(given, ApprovalAnswer):
            raise BadApprover(given)
        if not isinstance(given.approved, bool):
            raise BadApprover(given.approved, "ApprovalAnswer.approved")
        if not self._may_last:
            given = replace(given, scope="once", allow=0)
        if given.via is None:
            return ReceivedAnswer(given, "person")
        if given.approved and not request.client_may_approve and given.via not in self._trusted_clients:
            await asyncio.get_running_loop().create_future()  # It is no answer: the request waits for another one.
        if request.question is None:
            given = replace(given, scope="once", allow=0, grants=NO_GRANTS, arguments=None, paths=())
        return ReceivedAnswer(given, f"client {given.via}")


async def _answer(approver: Approver, request: ApprovalRequest) -> object:
    given = approver(request)
    return await given if inspect.isawaitable(given) else given


async def _within(seconds: float | None, answer: Awaitable[ReceivedAnswer]) -> ReceivedAnswer:
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        return ReceivedAnswer(ApprovalAnswer(approved=False, message=_expired(seconds or 0)), "expiry")


async def _as_coroutine(work: Awaitable[T]) -> T:
    return await work


def _people(principal: Principal, person_behind: Callable[[Principal], str | None]) -> set[str]:
    """The names of a principal, and of the person behind it."""
    return {name for name in (principal.who, person_behind(principal)) if name is not None}


def _digest_now(inbox: Inbox, waiting: Waiting) -> str:
    """The digest of what a request shows now. Only its diff can have changed since it was made: somebody may have
    applied a part of the changes of a trial run."""
    now = inbox.find(waiting.id).shown
    return policy.digest_of({**waiting.shown, "diff": now.get("diff")} if waiting.tried else waiting.shown)


def _inbox_answer(answered: Answered, seen: str) -> ReceivedAnswer:
    """The answer that another process wrote into the inbox. `seen` is the digest of the request that waits. If the
    answer belongs to another request, the result is a rejection whose `by` is `nobody`."""
    if answered.seen != seen:
        message = "the answer belongs to another request than the one that waits"
        return ReceivedAnswer(ApprovalAnswer(approved=False, message=message), "nobody")
    return ReceivedAnswer(to_answer(answered), "person")


def to_answer(answered: Answered) -> ApprovalAnswer:
    """An answer from the inbox in the form that an approver returns."""
    return ApprovalAnswer(
        approved=answered.approved,
        message=answered.message or f"{answered.who} {'approved' if answered.approved else 'rejected'} it in the inbox",
        arguments=answered.arguments,
        grants=grants_from(answered.grants),
        scope=answered.scope,  # type: ignore[arg-type]
        allow=answered.allow,
        who=answered.principal,
        rule_proof=answered.rule_proof,
        paths=tuple(answered.paths or ()),
    )


def _expired(seconds: float) -> str:
    return f"nobody answered within {seconds:g} {'second' if seconds == 1 else 'seconds'}"


def request_content(request: ApprovalRequest) -> dict[str, Any]:
    """The part of a request that is shown to a person. The answer is bound to exactly this content."""
    return {
        "tool": request.tool,
        "description": request.description,
        "arguments": own_copy(request.arguments),
        "reason": request.reason,
        "claim": request.claim,
        "parts": [part.to_json() for part in request.parts],
        "cwd": request.cwd,
        "env": dict(request.env),
        "timeout": request.timeout,
        "sandbox": request.sandbox.to_json(),
        "withheld": list(request.withheld),
        "diff": request.diff,
        "output": request.output,
        "preview": request.preview,
        "definitionDiff": request.definition_diff,
        "toAllow": [each.to_json() for each in request.to_allow],
        "chain": list(request.chain),
        "chainTools": list(request.chain_tools),
        "chainPurposes": list(request.chain_purposes),
        "pin": request.pin,
        "build": request.build,
        "batch": None if request.batch is None else request.batch[0],
        "connection": None if request.connection is None else request.connection.to_json(),
        "question": None if request.question is None else request.question.to_json(),
    }


def approval_request(
    run: Run,
    confinement: Confinement,
    reason: str,
    *,
    diff: str | None = None,
    output: str | None = None,
    withheld: tuple[str, ...] = (),
) -> ApprovalRequest:
    """The request for approval of a call. Secrets are masked in it, except in the diff, which shows the content of
    files."""
    call = run.call
    # A copy, so that nobody changes the arguments after the person has seen them.
    arguments, decision = masked_for_person(call, run.decision)
    masked = call.secrets.masked
    chain = [*nesting.callers(run)][::-1]
    return ApprovalRequest(
        run=call.run,
        tool=call.name,
        description=run.tool.spec.description,
        arguments=arguments,
        reason=masked(reason),
        who=call.who,
        thread=call.thread,
        cwd=call.cwd,
        env=masked(dict(call.env)),
        timeout=call.timeout,
        sandbox=confinement,
        withheld=withheld,
        diff=diff,
        output=masked(output),
        preview=masked(call.preview),
        claim=masked(call.claim),
        parts=decision.parts,
        to_allow=decision.to_allow if diff is None else (),
        definition_diff=decision.definition_diff,
        pin=decision.pin,
        client_may_approve=not decision.is_dangerous and decision.definition_diff is None,
        chain=tuple(each.id for each in chain),
        chain_tools=tuple(each.call.name for each in chain),
        chain_purposes=tuple(map(_purpose_of, chain)),
        id=policy.new_request_id(),
    )


def _purpose_of(run: Run) -> str | None:
    """The prompt of the task of a sub-agent; None for any other run."""
    prompt = run.call.arguments.get("prompt") if run.tool.spec.delegates else None
    if not isinstance(prompt, str):
        return None
    masked = run.call.secrets.masked_text(prompt)
    return masked if len(masked) <= MAX_PURPOSE else f"{masked[:MAX_PURPOSE]}…"


def waiting_facts(request: ApprovalRequest) -> dict[str, Any]:
    """The facts that observers get when a run waits for a person: the id of the request, why the call needs approval,
    and which rules could allow such calls from now on."""
    return {
        "request": request.id,
        "reason": request.reason,
        "toAllow": [each.to_json() for each in request.to_allow],
    }
