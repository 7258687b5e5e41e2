"""The decision about a call, with everything that is needed to explain the decision. Also the request to a person for
approval, and the person's answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from haft.contracts.confinement import NO_CONFINEMENT, NO_GRANTS, Confinement, Grants, Profile
from haft.contracts.connections import HeldConnection
from haft.contracts.footprint import Isolation
from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.principal import Principal
from haft.contracts.questions import Question
from haft.values import dataclass, field

Action = Literal["allow", "ask", "reject", "try", "delegate"]
DecidedBy = str
"""`rule`, `person`, `delegate`, `nobody`, `expiry`, or `client NAME`: a person answered through this MCP client."""
Scope = Literal["once", "thread", "always"]


@dataclass(frozen=True, slots=True)
class DecidedPart:
    """The decision about one part of a call: a simple command of a command line, or a redirection."""

    command: str
    action: Action
    reason: str
    rule: str | None = None
    """The rule that decided, in words; None if analysis decided. `source` says where the rule is written."""
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        rule = {} if self.rule is None else {"rule": self.rule, "source": self.source}
        return {"command": self.command, "action": self.action, "reason": self.reason, **rule}


@dataclass(frozen=True, slots=True)
class Delegation:
    """A program that decides whether a call may run, and the rule that delegates to it."""

    to: str
    rule: str
    source: str


@dataclass(frozen=True, slots=True)
class RuleOffer:
    """A rule that a person can add while approving a call. The rule allows no more than the person saw."""

    label: str
    rule: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "rule": dict(self.rule)}


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one call: the action, who decided, and by which rule."""

    action: Action
    layer: str
    """Which step decided: `enablement` (the tool is disabled), `rights` (of the sub-agent that makes the call), `pins`
    (nobody has approved the tool's definition), `rules`, `analysis` (of a command), `built-in` (haft's own rules),
    `delegate`, or `approval` (a person answered, or no person could)."""
    rule: str
    """The rule in words."""
    source: str
    """Where the rule is written."""
    by: DecidedBy
    reason: str
    parts: tuple[DecidedPart, ...] = ()
    profile: Profile = "workspace"
    """The profile of the sandbox, if the call runs in one."""
    neutral: bool = False
    """Whether neither a person nor a rule approved the command: see `Confinement.neutral`."""
    unasked: bool = False
    """Whether the call may run although neither a person nor a rule approved it, because it only reads: haft's analysis
    says so, or the declaration of a tool of haft or of the embedding program."""
    grants: Grants = NO_GRANTS
    granted_by: tuple[tuple[str, Grants], ...] = ()
    """Where `grants` come from: the sources of the rules, each with its grants."""
    isolation: Isolation | None = None
    """How a rule wants the call to be isolated from other callers; None if no rule says it."""
    message: str | None = None
    """The rule's message to the model, if the rule rejects."""
    delegates: tuple[Delegation, ...] = ()
    """The programs that decide, if the action is `delegate`. If all of them allow the call, the action becomes
    `otherwise`."""
    otherwise: Action = "allow"
    to_allow: tuple[RuleOffer, ...] = ()
    """The rules that a person can add while approving the call."""
    pin: str | None = None
    """The digest of the tool's definition and files. An approval is bound to it."""
    definition: Mapping[str, Any] | None = None
    """The definition itself, if an approval must be saved with it."""
    definition_diff: str | None = None
    """The diff from the definition that was approved before."""
    activated: str | None = None
    """The digest of the activated environment in the workspace, if its programs are on the call's PATH."""
    environment: tuple[str, Mapping[str, Any]] | None = None
    """The digest and the programs of that environment, if an approval must be saved with them."""
    is_dangerous: bool = False
    """Whether a part of the call is in a class of danger."""

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "layer": self.layer,
            "rule": self.rule,
            "source": self.source,
            "by": self.by,
            "reason": self.reason,
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A request for approval: the whole call, as it would run."""

    run: RunId
    tool: ToolName
    description: str
    arguments: Mapping[str, Any]
    reason: str
    who: str
    thread: ThreadId
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the caller adds to the tool's environment."""
    timeout: float | None = None
    sandbox: Confinement = NO_CONFINEMENT
    """The confinement of the call. The answer may add grants."""
    withheld: tuple[str, ...] = ()
    """Environment variables that the tool seems to use, and that are set on this host. The tool gets them only if the
    answer grants them."""
    diff: str | None = None
    """The changes of a trial run, which wait to be applied."""
    output: str | None = None
    """The output of a trial run."""
    preview: str | None = None
    """The line in which the tool says what the call would do. It is shown in addition to the arguments."""
    claim: str | None = None
    """The caller's own sentence of why it makes the call. Mostly a model wrote it, and nothing checks it: show it as
    the words of the agent."""
    parts: tuple[DecidedPart, ...] = ()
    """The decisions about the parts of the command."""
    to_allow: tuple[RuleOffer, ...] = ()
    """The rules that an answer can add; the answer names one by its index."""
    definition_diff: str | None = None
    """The diff from the tool's definition that was approved before."""
    pin: str | None = None
    """The digest of the definition that an approval is bound to. If `build` is set: the digest of the requirements."""
    build: str | None = None
    """Set if the request asks only whether packages may be built, which runs code of their authors; else None. It is a
    command line that haft does not run: a person can run it before the call to allow the build. The answer approves or
    rejects the build. Grants, other arguments and a longer scope in the answer have no effect."""
    connection: HeldConnection | None = None
    """The connection that waits for the answer, if the request is about a host that was not granted to a call in
    progress; else None. The answer lets exactly this host and port through: for the rest of this call, or also for
    later approved calls, as its `scope` and `allow` say. Other arguments and other grants have no effect."""
    question: Question | None = None
    """The question that a tool in progress asks, if the request is such a question; else None. An answer that approves
    has the values of the form in `arguments`. An answer that does not approve declines. Grants and a longer scope have
    no effect."""
    together: tuple[str, int] | None = None
    """For a question: an id that all questions have that the tool asks at once, and how many these are."""
    batch: tuple[str, int] | None = None
    """For a call of a batch: the id of the batch, and how many of its calls are asked about together. An approver that
    has a method `approve_batch` gets all these requests at once."""
    client_may_approve: bool = True
    """Whether a person may approve through an MCP client. False for dangerous calls and for changed definitions, unless
    the setting `approval.trusted_clients` names the client."""
    chain: tuple[str, ...] = ()
    """The runs that wait for the answer, the outermost first."""
    chain_tools: tuple[str, ...] = ()
    """The tool that each run of `chain` calls."""
    chain_purposes: tuple[str | None, ...] = ()
    """The prompt of each run of `chain` that is the task of a sub-agent; None for others. A model wrote it, unless a
    person started the task."""
    revise: Callable[[Mapping[str, Any]], Awaitable[ApprovalRequest]] | None = field(
        default=None, compare=False, repr=False
    )
    """Returns the request for the same call with other arguments, after validating them and deciding again. Raises if
    the tool cannot be called with these arguments."""
    id: str | None = None
    """The id of the request in the inbox, where another process may answer it too."""
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """The answer of a person. Edited arguments are validated and decided again."""

    approved: bool
    message: str | None = None
    """The reason in the audit log. The model sees it if the call is rejected."""
    arguments: Mapping[str, Any] | None = None
    grants: Grants | Mapping[str, Any] = NO_GRANTS
    """Additional grants for this call. Granted variables hold for the whole `scope`; all other grants hold for this
    call only."""
    scope: Scope = "once"
    """Whether similar calls need no approval from now on: in this thread, or always in this workspace."""
    allow: int = 0
    """The index in `to_allow` of the rule that holds from now on, if the scope is not `once`."""
    who: str | Principal | None = None
    """Who answered, if not the principal of the service. An agent cannot approve."""
    via: str | None = None
    """The name of the MCP client through which the person answered; None if the person answered haft itself. Such an
    answer holds for this call only: haft ignores its scope, its grants and edited arguments."""
    rule_proof: str | None = None
    """The proof that the person knows the approval passphrase, for the rule that this answer makes."""
    paths: tuple[str, ...] = ()
    """For the changes of a trial run: the paths whose changes are applied, with everything below them; the rest stays
    held. Empty: all changes."""


Approver = Callable[[ApprovalRequest], "Awaitable[bool | ApprovalAnswer] | bool | ApprovalAnswer"]
"""Answers requests for approval: a prompt at a terminal, or a dialog of the embedding program. It can be a plain
function if it answers at once. A function that waits must be asynchronous, because it would block the event loop.

An approver is asked only about calls and builds, unless the service was opened with `approves_connections=True`. With
this option the approver is also asked about connections to hosts that were not granted: `request.connection` has the
host, the port and the program, and the answer decides only about this host and port. So an approver that decides by the
name of the tool, and does not look at `request.connection`, opens no host. In the same way, an approver gets questions
of tools (`request.question`) only with `answers_questions=True`.

An approver may be an object that can be called and that also has a method `approve_batch(requests)`. It gets the
requests of all calls of a batch that need approval, and returns a list with one answer for each, in the same order;
like the approver, it is asynchronous if it waits. An approver without this method is asked about one call after
another."""
