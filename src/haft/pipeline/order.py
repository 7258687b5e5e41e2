"""The pipeline, on one page: the stages that every call passes, in their order. Read this first.

    service.call(name, arguments) ─► Run          (await it, iterate it, cancel it)
                    │
    record → resolve → validate → decide → approve → settle → build → queue
    audit    registry  schema     policy   a person  changes  a person  schedule
                                                                         │
                  invoke ← shape ← confine ← transact ← prepare ◄────────┘
                  the tool limits  sandbox   changes    the tool

Every call of every tool takes this way, whatever format the tool came in and whichever surface it was called from. A
stage is a function of the run and of the rest of the way (`proceed`). It may stop the call, change it, or watch it. The
call stands in one place, `run.call`: a stage that changes it puts a changed copy there (`run.revise`), and nothing else
carries one. A stage that has nothing to do with a call is passed by (`passes`): nothing to ask, to try, to prepare.

The order carries the safety argument:

- `record` is outermost: refusals, mistakes and crashes are recorded too, and no outcome is seen before it is on disk.
- `validate` comes before `decide`: what is judged is what will run.
- `decide` and `approve` come before `queue`: no place is held while a person thinks.
- `settle` stands outside of `queue`: what was tried waits for a person, and holds no place meanwhile.
- `build` does too: it asks where `prepare` finds that a package must be built, and goes on from `queue` after a yes.
- `prepare` comes before `transact` and `shape`: the environment that a tool needs is no part of what a call changed,
  and making it takes none of its time.
- `transact` comes after `queue`, and around `confine`: what the call changed is known when nothing of it runs any more,
  and none of it counts before it was looked at.
- `confine` comes after `approve`: the decision says what the sandbox lets through. What confines a call is one value
  (`confinement`): a person is shown it, the helper mounts it and refuses what was replaced since, the outcome tells it.
- `shape` comes after `queue`: a deadline's clock runs only while the call is in progress.
- `invoke` is last, and the only one that meets the tool.

A call that a tool makes takes the same way, as a run of its own within the scope of the run that made it: it borrows
that run's place, ends with it at the latest, and whoever is asked about it sees who waits (`nesting`).

A failure is an outcome, not an exception. Only cancellation and mistakes of ours travel as exceptions, and `record`
turns these into outcomes too: every run ends in exactly one terminal status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from haft.audit import Trail
from haft.contracts import (
    ApprovalAnswer,
    Approver,
    Call,
    Confinement,
    Decision,
    HostId,
    Launcher,
    Limits,
    Principal,
    RunId,
    Workspace,
)
from haft.pipeline.approval_broker import ApprovalBroker, Questions
from haft.pipeline.chain import Stage
from haft.pipeline.confinement import Confinements
from haft.pipeline.context import CallContext
from haft.pipeline.output_buffer import Keeping
from haft.pipeline.run import Run
from haft.pipeline.stages import (
    Approve,
    ApproveBuild,
    Confine,
    Decide,
    Durability,
    Invoke,
    Prepare,
    Queue,
    Record,
    Resolve,
    Settle,
    Shape,
    Transact,
    Validate,
)
from haft.pipeline.stages.approve import Agree, Hold
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.policy import PolicyQuery
from haft.registry import Catalogue
from haft.runs import Scribe
from haft.sandbox import Sandbox
from haft.schedule import Admission
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.changes import EngineSelector


@dataclass(frozen=True, slots=True)
class Parts:
    """What the stages need, brought together by `service`."""

    host: HostId
    workspace: Workspace
    sandbox: Sandbox
    engine_selector: Callable[[], EngineSelector]
    limits: Limits
    tool_seconds: Mapping[str, float]
    """Deadlines of single tools, from the configuration."""
    seconds_are_set: bool
    """Whether `limits.max_seconds` was configured; as a mere default it gives way to any deadline that is set."""
    durability: Durability
    catalogue: Catalogue
    renew: Callable[[str], Awaitable[None]] | None
    """Looks again at what lies on disk, for a tool that is not there or was changed."""
    decide: Callable[[PolicyQuery], Decision]
    approver: Approver | None
    person: Principal
    """Whoever an approver answers for that names nobody."""
    questions: Questions | None
    """The inbox, through which other processes can answer; None where there is no state to share."""
    wait_seconds: float
    """How long a question waits in the inbox where there is no approver; 0: nobody is asked."""
    answers_are_open: bool
    """Whether other processes may answer although nothing hides the inbox from tools."""
    agree: Agree
    hold: Hold
    scribe: Scribe
    trail: Trail
    keep: Callable[[RunId], Keeping]
    call: Callable[..., Run]
    """Makes a call, for tools that call others: the service's own."""


def stages(parts: Parts, live: Mapping[RunId, Run], foreign: UntrustedCalls) -> tuple[Stage, ...]:
    """The pipeline, outermost first."""
    confinements = Confinements(parts.sandbox)

    def launcher(run: Run) -> Launcher:
        async def confinement() -> Confinement:
            confinement = run.call.confinement
            # What runs in this process has no sandbox; the commands that it starts have.
            return (
                await confinements.of(run)
                if confinement is None or run.tool.spec.hosting == "in-process"
                else confinement
            )

        return parts.sandbox.launcher_within(confinement, run.call.layer)

    def context(run: Run) -> CallContext:
        return CallContext(run, parts.workspace, launcher, parts.limits, parts.call)

    def previewing(run: Run) -> CallContext:
        return CallContext(run, parts.workspace, lambda _run: parts.sandbox.asking_launcher(), parts.limits, parts.call)

    validate = Validate(context, foreign)

    async def is_hidden() -> bool:
        return parts.answers_are_open or (await parts.sandbox.ready()).namespaces

    def answered(call: Call, principal: Principal, request: str | None, answer: ApprovalAnswer) -> None:
        said = {"request": request, "message": answer.message, "scope": answer.scope}
        parts.trail.tell_act(
            "approve" if answer.approved else "reject", principal, call.run, call.name, call.secrets, **said
        )

    broker = ApprovalBroker(
        parts.approver,
        parts.questions,
        foreign,
        parts.host,
        parts.workspace.root,
        parts.wait_seconds,
        is_hidden,
        parts.person,
        answered,
    )
    decide = Decide(parts.decide, parts.sandbox, parts.engine_selector)
    return (
        Record(live, parts.scribe, parts.trail, parts.host, parts.durability),
        Resolve(parts.catalogue, parts.renew, parts.sandbox),
        validate,
        decide,
        Approve(broker, parts.agree, parts.hold, validate, decide, parts.sandbox, confinements, previewing),
        Settle(broker, parts.engine_selector),
        ApproveBuild(broker, parts.sandbox),
        Queue(Admission(parts.limits.max_concurrent)),
        Prepare(context),
        Transact(parts.engine_selector, parts.workspace, parts.sandbox, confinements),
        Confine(parts.sandbox, confinements),
        Shape(
            parts.limits,
            parts.tool_seconds,
            parts.keep,
            parts.sandbox,
            context,
            cap_is_set=parts.seconds_are_set,
        ),
        Invoke(context, foreign),
    )
