"""The pipeline on one page: the stages that every call passes, in their order. Read this first.

    service.call(name, arguments) ─► Run          (await it, iterate over it, cancel it)
                    │
    record → limit_open → retry_lookup → resolve  → validate → decide → approve  → review   → approve_build → keep_order
    audit    per user     batch          registry   schema     policy   a person   a person   a person        batch
                                                                                                   │
    invoke   ← limit    ← confine ← transact ← prepare  ← queue    ← recall   ← take_locks ◄───────┘
    the tool   deadline   sandbox   changes    the tool   schedule   cache      schedule

Every call of every tool goes through this pipeline. Neither the format of the tool nor the surface that made the call
matters.

A stage is a callable, `stage(run, proceed)`. It calls `proceed(run)` to run the remaining stages, and returns the
outcome. A stage can stop the call, change it, or watch it; the first line of its module says which. `run.call` is the
only copy of the call: a stage changes it with `run.revise`. A stage can have a method `skips(run)`; when it returns
true, the pipeline leaves the stage out for that run.

The order of the stages makes calls safe:

- `record` is the outermost stage, so that it also records rejected calls, invalid calls and crashes. A caller gets an
  outcome only after the outcome is on disk.
- `limit_open` comes first after `record`, so that a refused call costs next to nothing, and an open call counts until
  it has ended.
- `validate` comes before `decide`, so that policy decides about the same arguments that the tool gets.
- `decide` and `approve` come before `queue`, so that a call holds no place in the queue while a person thinks.
- `review` lies outside `queue` for the same reason. After a trial run it shows the changes to a person, who applies or
  drops them.
- `approve_build` lies outside `queue` too. `prepare` may find that a package must be built. Then `approve_build` asks a
  person, and after an approval it runs the stages from `queue` on a second time.
- `keep_order` comes after everything that a person answers, and before `queue`, so that a call that waits for an
  earlier call of its batch holds no place. If that call has changed something meanwhile, `keep_order` looks up the
  tool, validates, decides and compares once more: an approval holds only for what the person saw.
- `retry_lookup` lies around all stages whose result an earlier call of the same batch may change: a tool that is
  missing now may be there at the call's turn.
- `take_locks` comes before `queue`, so that a call holds no place while it waits for a lock. It comes before
  `transact`, so that a call sees what the calls that it waited for have committed.
- `recall` comes after `keep_order` and `take_locks`, so that it looks for a kept answer only when all calls before this
  one have ended. It comes after `decide`, so that it never answers what policy rejects today, and before `queue`,
  because an answer that is given again needs no place.
- `prepare` comes before `transact` and `limit`. It makes the environment that a tool needs, such as a virtual
  environment. That work is not part of the call's changes, and does not count against the call's deadline.
- `transact` comes after `queue` and lies around `confine`. It collects the call's changes when no process of the call
  runs any more, and checks all of them before it commits any.
- `confine` comes after `approve`, because the decision says what the sandbox lets through. One value, the
  `Confinement`, says what the call may reach: the person sees it, the sandbox enforces it, the outcome reports it. The
  sandbox refuses a granted path if another file has replaced it since the person saw it.
- `limit` comes after `queue`, so that a deadline counts only the time in which the call is in progress.
- `invoke` is the last stage, and the only one that invokes the tool.

A tool can call other tools. Such a call goes through the same pipeline, as a run of its own. It borrows the place of
the run that made it, and it ends no later than that run. If the call needs approval, the person sees which runs wait
for it. While a nested call waits for a lock, its callers have no places in the queue. See `nesting`.

A failure is an outcome, not an exception. Only cancellation and bugs in haft travel as exceptions, and `record` turns
these into outcomes too: every run ends in exactly one terminal status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.audit import Trail
from haft.contracts import (
    NO_CONDITIONS,
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    Call,
    Conditions,
    Confinement,
    Decision,
    HostId,
    Isolation,
    Launcher,
    Limits,
    Principal,
    RunId,
    ToolFailed,
    Workspace,
)
from haft.pipeline import nesting
from haft.pipeline.approval_broker import AnswerCheck, ApprovalBroker, SharedInbox
from haft.pipeline.chain import Stage
from haft.pipeline.confinement import Confinements
from haft.pipeline.connection_questions import ConnectionQuestions
from haft.pipeline.context import CallContext
from haft.pipeline.faulty_launcher import with_faults
from haft.pipeline.footprints import Footprints
from haft.pipeline.output_buffer import OutputStore
from haft.pipeline.questions import Answerable, Questions
from haft.pipeline.run import Run
from haft.pipeline.run_watcher import RunWatcher
from haft.pipeline.stages import (
    ApplyLimits,
    Approve,
    ApproveBuild,
    Confine,
    Decide,
    Durability,
    Invoke,
    KeepOrder,
    LimitOpen,
    Prepare,
    Queue,
    Recall,
    Record,
    Resolve,
    RetryLookup,
    Review,
    TakeLocks,
    Transact,
    Validate,
)
from haft.pipeline.stages.approve import PinFirstUse, SaveApproval
from haft.pipeline.stages.prepare import SecretsOf
from haft.pipeline.stages.review import ApplyApproved
from haft.pipeline.untrusted_calls import UntrustedCalls
from haft.policy import PolicyQuery
from haft.registry import Catalogue
from haft.runs import RunWriter
from haft.sandbox import Sandbox
from haft.schedule import Admission, Locks, WaitingLine
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.cache import KeptAnswers, WatchedTrees
    from haft.changes import EngineSelector

MAX_RECORDED_QUESTION: Final = 1_000


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Everything that the stages need. `service` fills it."""

    host: HostId
    workspace: Workspace
    sandbox: Sandbox
    engine_selector: Callable[[], EngineSelector]
    isolation: Isolation
    waits_for_flush: bool
    """Whether a call ends only when its changes are in the workspace's own files."""
    limits: Limits
    tool_seconds: Mapping[str, float]
    """The configured deadlines of single tools, by tool name."""
    seconds_are_set: bool
    """Whether `limits.max_seconds` is configured. If it is not, its default applies only to calls for which no other
    deadline is set."""
    durability: Durability
    catalogue: Catalogue
    renew: Callable[[str], Awaitable[None]] | None
    """Discovers the tool with this name again. Used if the catalogue lacks the tool, or the files of the tool may have
    changed."""
    decide: Callable[[PolicyQuery], Decision]
    approver: Approver | None
    person: Principal
    """The person who is recorded as the author of an answer, if the approver's answer names nobody."""
    inbox: SharedInbox | None
    """The inbox, in which other processes can answer; None if no state is shared."""
    wait_seconds: float
    """How many seconds a request waits in the inbox if there is no approver; 0 if it does not wait."""
    answers_are_open: bool
    """Whether other processes may answer even if nothing hides the inbox from tools."""
    approves_connections: bool
    """Whether the approver also answers requests about connections."""
    answers_questions: bool
    """Whether the approver also answers questions of tools."""
    answerable: Answerable | None
    """Which kinds of questions the program that made a run's call can answer; None if only people answer."""
    answer_checks: AnswerCheck
    """Checks answers of other processes, if a person has set an approval passphrase."""
    trusted_clients: Collection[str]
    """The MCP clients through which a person may also approve dangerous calls and changed definitions."""
    network_ask_seconds: float
    """How many seconds a connection to a host that was not granted waits for an answer; 0 if nobody is asked."""
    save_approval: SaveApproval
    pin_first_use: PinFirstUse
    footprints: Footprints
    locks: Locks
    """The locks between all calls on the workspace, also those of other processes."""
    waiting_line: WaitingLine
    answers: KeptAnswers
    watched_trees: Callable[[], WatchedTrees]
    verifies_content: bool
    """Whether kept answers are given again only after the contents of files were compared."""
    run_writer: RunWriter
    trail: Trail
    open_output_store: Callable[[RunId], OutputStore]
    call: Callable[..., Run]
    """`ToolService.call`, for tools that call other tools."""
    apply_approved: ApplyApproved
    """Applies a part of the changes of a trial run."""
    person_behind: Callable[[Principal], str | None]
    """The name of the person who makes a call, or for whom an agent makes it; None if nobody stands behind it."""
    four_eyes: bool
    """Whether nobody may approve calls of their own."""
    secrets_of: SecretsOf
    """The values of `${secret:…}` for the person who makes a call."""
    is_shared: bool = False
    """Whether several people use the workspace, who do not see each other's `/tmp`."""
    conditions: Conditions = NO_CONDITIONS
    """What a test changes."""
    watcher: RunWatcher | None = None
    """Is told about every run, for traces and metrics."""


def stages(dependencies: Dependencies, live: Mapping[RunId, Run], untrusted: UntrustedCalls) -> tuple[Stage, ...]:
    """The stages of the pipeline, the outermost first."""
    faults = dependencies.conditions.faults

    def launcher(run: Run) -> Launcher:
        async def confinement() -> Confinement:
            confinement = run.call.confinement
            # An in-process tool has no sandbox itself, but the commands that it starts have one.
            return (
                await confinements.of(run)
                if confinement is None or run.tool.spec.hosting == "in-process"
                else confinement
            )

        _check_launches(run)
        observer = questions.connections_of(run)
        within = dependencies.sandbox.launcher_within(confinement, run.call.layer, observer=observer)
        within = with_faults(within, faults)
        return within if run.call.attachment is None else run.call.attachment.launcher(within)

    def context(run: Run) -> CallContext:
        return CallContext(
            run, dependencies.workspace, launcher, dependencies.limits, dependencies.call, tool_questions
        )

    def preview_context(run: Run) -> CallContext:
        return CallContext(
            run,
            dependencies.workspace,
            lambda _run: dependencies.sandbox.describe_launcher(),
            dependencies.limits,
            dependencies.call,
        )

    async def is_inbox_hidden() -> bool:
        return dependencies.answers_are_open or (await dependencies.sandbox.ready()).namespaces

    def record_answer(
        call: Call,
        principal: Principal,
        request: str | None,
        answer: ApprovalAnswer,
        asked: ApprovalRequest | None,
    ) -> None:
        facts = _answer_facts(answer, asked)
        dependencies.trail.record_act(
            "approve" if answer.approved else "reject",
            principal,
            call.run,
            call.name,
            call.secrets,
            request=request,
            **facts,
        )

    def record_refusal(call: Call, request: str, reason: str) -> None:
        dependencies.trail.record_refusal(
            "haft approve", call.principal, reason, run=call.run, tool=call.name, request=request
        )

    broker = ApprovalBroker(
        dependencies.approver,
        dependencies.inbox,
        untrusted,
        dependencies.host,
        dependencies.workspace.root,
        dependencies.wait_seconds,
        is_inbox_hidden,
        dependencies.person,
        record_answer,
        approves_connections=dependencies.approves_connections,
        answers_questions=dependencies.answers_questions,
        trusted_clients=dependencies.trusted_clients,
        checks=dependencies.answer_checks,
        record_refusal=record_refusal,
        person_behind=dependencies.person_behind,
        four_eyes=dependencies.four_eyes,
        now=dependencies.conditions.now,
    )
    tool_questions = Questions(broker, dependencies.answerable, dependencies.wait_seconds)
    questions = ConnectionQuestions(broker, dependencies.save_approval, dependencies.network_ask_seconds)
    confinements = Confinements(
        dependencies.sandbox, questions.may_ask, dependencies.limits, is_shared=dependencies.is_shared
    )

    def how_to_connect(run: Run, grant: str) -> str:
        return dependencies.sandbox.how_to_connect(grant, run.call.confinement)

    resolve = Resolve(dependencies.catalogue, dependencies.renew, dependencies.sandbox, dependencies.engine_selector)
    validate = Validate(context, untrusted)
    decide = Decide(
        dependencies.decide,
        dependencies.sandbox,
        dependencies.engine_selector,
        dependencies.workspace.root,
        dependencies.person_behind,
    )
    approve = Approve(
        broker,
        dependencies.save_approval,
        dependencies.pin_first_use,
        validate,
        decide,
        dependencies.sandbox,
        confinements,
        preview_context,
    )
    return (
        Record(
            live,
            dependencies.run_writer,
            dependencies.trail,
            dependencies.host,
            dependencies.durability,
            how_to_connect,
        ),
        LimitOpen(dependencies.limits.max_open_per_user),
        RetryLookup(),
        resolve,
        validate,
        decide,
        approve,
        Review(broker, dependencies.engine_selector, dependencies.apply_approved),
        ApproveBuild(broker, dependencies.sandbox),
        KeepOrder(resolve, validate, decide, approve, dependencies.workspace),
        TakeLocks(dependencies.footprints, dependencies.locks, dependencies.waiting_line),
        Recall(
            dependencies.answers,
            dependencies.watched_trees,
            dependencies.engine_selector,
            dependencies.workspace,
            dependencies.footprints,
            dependencies.sandbox,
            confinements,
            dependencies.limits,
            by_content=dependencies.verifies_content,
        ),
        Queue(
            Admission(dependencies.limits.max_concurrent, dependencies.limits.max_concurrent_per_user),
            dependencies.waiting_line,
        ),
        Prepare(context, dependencies.secrets_of),
        Transact(
            dependencies.engine_selector,
            dependencies.workspace,
            dependencies.sandbox,
            confinements,
            dependencies.isolation,
            dependencies.locks,
            waits_for_flush=dependencies.waits_for_flush,
        ),
        Confine(dependencies.sandbox, confinements),
        ApplyLimits(
            dependencies.limits,
            dependencies.tool_seconds,
            dependencies.open_output_store,
            dependencies.sandbox,
            context,
            cap_is_set=dependencies.seconds_are_set,
            clock=dependencies.conditions.clock,
        ),
        Invoke(context, untrusted, faults),
    )


def _answer_facts(answer: ApprovalAnswer, asked: ApprovalRequest | None) -> dict[str, Any]:
    """What the audit log says about an answer."""
    facts: dict[str, Any] = {"message": answer.message, "scope": answer.scope}
    if answer.paths:
        facts["paths"] = list(answer.paths)
    if answer.via is not None:
        facts["via"] = answer.via
    if asked is not None and asked.connection is not None:
        facts["connection"] = asked.connection.to_json()
    if asked is not None and asked.question is not None:
        facts["question"] = {"by": asked.question.by, "message": asked.question.message[:MAX_RECORDED_QUESTION]}
    return facts


def _check_launches(run: Run) -> None:
    """Raise `ToolFailed` if the tool may start no commands, because they would not see the layer in which it works."""
    if nesting.wants_layer(run):
        raise ToolFailed(f"`{run.call.name}` works in a layer of its own: there it starts commands only by calls")
