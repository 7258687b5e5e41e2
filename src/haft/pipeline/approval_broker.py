"""Where people are asked: by the approver of this host, and through the inbox by whoever else can answer. The first
answer wins.

An approver that answers at once is all there is to it. Where it takes longer, or there is none, the question lies in
the inbox, on disk, and any process can answer it; it is looked at several times a second. Without an approver a
question expires.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from haft import policy
from haft.contracts import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    BadApprover,
    Call,
    Confinement,
    HaftError,
    HostId,
    Principal,
    grants_from,
    own_copy,
)
from haft.pipeline import nesting
from haft.pipeline.masking import as_shown
from haft.pipeline.run import Run
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.values import dataclass, replace

if TYPE_CHECKING:
    from haft.policy import Answered, Inbox, Waiting

T = TypeVar("T")
Tell = Callable[[Call, Principal, str | None, ApprovalAnswer], None]
"""Writes down who answered which request, and what."""

AT_ONCE_SECONDS: Final = 0.05
"""What an approver has before the question is written down for others."""
LOOK_SECONDS: Final = 0.1
LEAST_SECONDS: Final = 60.0
"""How long a question can be answered after its host died, at least."""


@dataclass(frozen=True, slots=True)
class Given:
    """An answer, and how it came."""

    answer: ApprovalAnswer
    by: str
    """`person`, `nobody` or `expiry`."""


class Questions(Protocol):
    """The inbox, as the broker needs it: handed out one at a time, in a thread."""

    def use(self, work: Callable[[Inbox], T]) -> Awaitable[T]: ...

    def is_alive(self, host: HostId) -> bool: ...

    def may_have_kept(self, fingerprint: str) -> bool:
        """Whether a yes may lie there for this call: a look that costs nothing."""
        ...


class ApprovalBroker:
    """Asks."""

    def __init__(
        self,
        approver: Approver | None,
        questions: Questions | None,
        foreign: UntrustedCalls,
        host: HostId,
        workspace: str,
        wait_seconds: float,
        is_hidden: Callable[[], Awaitable[bool]],
        person: Principal,
        tell: Tell,
    ) -> None:
        self._is_hidden = is_hidden
        self._person = person
        self._tell = tell
        self._approver = approver
        self._questions = questions
        self._foreign = foreign
        self._host = host
        self._workspace = workspace
        self._wait_seconds = wait_seconds

    async def has_someone(self) -> bool:
        """Whether anyone can be asked at all."""
        return self._approver is not None or (self._wait_seconds > 0 and await self._shared() is not None)

    async def _shared(self) -> Questions | None:
        """The inbox, where other processes may answer: not where a tool could reach it, and approve itself."""
        return self._questions if await self._is_hidden() else None

    async def take_unused_approval(self, call: Call) -> ApprovalAnswer | None:
        """A yes that was given to exactly this call when its host had died."""
        fingerprint = self._fingerprint(call)
        if self._questions is None or not self._questions.may_have_kept(fingerprint):
            return None
        questions = await self._shared()
        if questions is None:
            return None
        found = await questions.use(lambda inbox: inbox.take_unused_approval(fingerprint, questions.is_alive))
        if found is None or found.answer is None:
            return None
        return self._told(call, found.id, replace(to_answer(found.answer), scope="once"))

    async def ask(self, run: Run, request: ApprovalRequest) -> Given:
        """Wait for an answer. Cancelling withdraws the question. Who waits for the run holds no place meanwhile. The
        audit log has a person's answer when this returns; `NeedsPerson` where an agent approved."""
        if run.parent is None:
            given = await self._answer(run.call, request)
        else:
            async with nesting.while_a_person_thinks(run):
                given = await self._answer(run.call, request)
        return given if given.by != "person" else replace(given, answer=self._told(run.call, request.id, given.answer))

    def _told(self, call: Call, request: str | None, answer: ApprovalAnswer) -> ApprovalAnswer:
        principal = self._person.acting(answer.who)
        if answer.approved:
            principal.must_be_person("approve")
        self._tell(call, principal, request, answer)
        return replace(answer, who=principal)

    async def _answer(self, call: Call, request: ApprovalRequest) -> Given:
        asking = _Asking(self._foreign, self._approver)
        if self._approver is not None:
            asking.begin(request)
            given = await asking.wait(AT_ONCE_SECONDS)
            if given is not None:
                return given
        try:
            questions = await self._shared()
            if questions is None:
                return await asking.run_uncancellable()
            return await self._in_company(call, request, asking, questions)
        finally:
            await asking.stop()

    async def _in_company(self, call: Call, request: ApprovalRequest, asking: _Asking, questions: Questions) -> Given:
        now = time.time()
        lasts = max(self._wait_seconds, LEAST_SECONDS) if self._approver is not None else self._wait_seconds
        shown = shown_of(request)
        waiting = policy.Waiting(
            id=request.id or policy.new_request_id(),
            run=call.run,
            host=self._host,
            workspace=self._workspace,
            who=call.who,
            thread=call.thread,
            created_at=now,
            expires_at=now + lasts,
            tried=request.diff is not None,
            fingerprint=self._fingerprint(call, request),
            shown=shown,
        )
        try:
            await questions.use(lambda inbox: inbox.put(waiting))
            return await self._first_answer(waiting, asking, questions, lasts)
        except BaseException:
            with contextlib.suppress(HaftError):
                await asyncio.shield(_all_of(questions.use(lambda inbox: inbox.end(waiting.id))))
            raise

    async def _first_answer(self, waiting: Waiting, asking: _Asking, questions: Questions, lasts: float) -> Given:
        expires_at = waiting.expires_at
        seen = policy.digest_of(waiting.shown)
        while True:
            given = await asking.wait(LOOK_SECONDS)
            if given is not None and await questions.use(lambda inbox: inbox.end(waiting.id)):
                return given
            answered = await questions.use(lambda inbox: inbox.answer_to(waiting.id))
            if answered is not None:
                await questions.use(lambda inbox: inbox.end(waiting.id, "taken"))
                return _given(answered, seen)
            now = time.time()
            if self._approver is None and now >= expires_at:
                if await questions.use(lambda inbox: inbox.end(waiting.id)):
                    return Given(ApprovalAnswer(approved=False, message=_expired(lasts)), "expiry")
            elif self._approver is not None and now > expires_at - lasts / 2:
                expires_at = now + lasts
                await questions.use(lambda inbox, until=expires_at: inbox.prolong(waiting.id, until))  # type: ignore[misc]

    def _fingerprint(self, call: Call, request: ApprovalRequest | None = None) -> str:
        decision = call.decision
        # A yes to building is none to the call.
        build = {} if request is None or request.build is None else {"build": request.pin}
        return policy.fingerprint_of(
            {
                **build,
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


class _Asking:
    """The approver at work: it may answer, fail, or be called off."""

    def __init__(self, foreign: UntrustedCalls, approver: Approver | None) -> None:
        self._foreign = foreign
        self._approver = approver
        self._task: asyncio.Task[Given] | None = None

    def begin(self, request: ApprovalRequest) -> None:
        self._task = asyncio.ensure_future(self._asked(request))

    async def wait(self, seconds: float) -> Given | None:
        """Its answer, if it comes in time."""
        if self._task is None:
            await asyncio.sleep(seconds)
            return None
        try:
            done, _ = await asyncio.wait({self._task}, timeout=seconds)
        except asyncio.CancelledError:
            await self.stop()
            raise
        return self._task.result() if done else None

    async def run_uncancellable(self) -> Given:
        assert self._task is not None
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Call it off."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
        if task is not None and not task.cancelled():
            task.exception()  # Looked at, or the loop would complain of an answer that came too late to matter.

    async def _asked(self, request: ApprovalRequest) -> Given:
        assert self._approver is not None
        try:
            given = await self._foreign.held(_answer(self._approver, request))
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            reason = f"the approver failed: {type(error).__name__}: {error}"
            return Given(ApprovalAnswer(approved=False, message=reason), "nobody")
        if isinstance(given, bool):
            given = ApprovalAnswer(approved=given)
        if not isinstance(given, ApprovalAnswer):
            raise BadApprover(given)
        if not isinstance(given.approved, bool):
            raise BadApprover(given.approved, "ApprovalAnswer.approved")
        return Given(given, "person")


async def _answer(approver: Approver, request: ApprovalRequest) -> object:
    given = approver(request)
    return await given if inspect.isawaitable(given) else given


async def _all_of(work: Awaitable[T]) -> T:
    return await work


def _given(answered: Answered, seen: str) -> Given:
    """What another process wrote down."""
    if answered.seen != seen:
        message = "the answer was given to something else than what was asked"
        return Given(ApprovalAnswer(approved=False, message=message), "nobody")
    return Given(to_answer(answered), "person")


def to_answer(answered: Answered) -> ApprovalAnswer:
    """As an approver would have given it."""
    return ApprovalAnswer(
        approved=answered.approved,
        message=answered.message or f"{answered.who} said {'yes' if answered.approved else 'no'} in the inbox",
        arguments=answered.arguments,
        grants=grants_from(answered.grants),
        scope=answered.scope,  # type: ignore[arg-type]
        allow=answered.allow,
        who=answered.principal,
    )


def _expired(seconds: float) -> str:
    return f"nobody answered within {seconds:g} seconds"


def shown_of(request: ApprovalRequest) -> dict[str, Any]:
    """What is shown of a call, whoever shows it: the answer is bound to it."""
    return {
        "tool": request.tool,
        "description": request.description,
        "arguments": own_copy(request.arguments),
        "reason": request.reason,
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
        "pin": request.pin,
        "build": request.build,
    }


def request_of(
    run: Run,
    confinement: Confinement,
    reason: str,
    *,
    diff: str | None = None,
    output: str | None = None,
    withheld: tuple[str, ...] = (),
) -> ApprovalRequest:
    """The question about a call. Secrets are masked in it, but for files: a diff shows what they hold."""
    call = run.call
    # A copy: what was shown cannot be changed behind the person's back.
    arguments, decision = as_shown(call, run.decision)
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
        parts=decision.parts,
        to_allow=decision.to_allow if diff is None else (),
        definition_diff=decision.definition_diff,
        pin=decision.pin,
        chain=tuple(each.id for each in chain),
        chain_tools=tuple(each.call.name for each in chain),
        id=policy.new_request_id(),
    )


def told_of(request: ApprovalRequest) -> dict[str, Any]:
    """What whoever watches a run learns when it waits for a person: which request to answer, why it is asked, and what
    could be allowed from now on, so that calls like it are not asked about again."""
    return {
        "request": request.id,
        "reason": request.reason,
        "toAllow": [each.to_json() for each in request.to_allow],
    }
