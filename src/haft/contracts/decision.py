"""The answer to "may this happen", with everything needed to explain it later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from haft.contracts.confinement import NO_CONFINEMENT, NO_GRANTS, Confinement, Grants, Profile
from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.principal import Principal
from haft.values import dataclass, field

Action = Literal["allow", "ask", "reject", "try", "delegate"]
DecidedBy = Literal["rule", "person", "delegate", "nobody", "expiry"]
Scope = Literal["once", "thread", "always"]


@dataclass(frozen=True, slots=True)
class DecidedPart:
    """What was decided about one part of a call: a simple command of a line, a redirection."""

    command: str
    action: Action
    reason: str
    rule: str | None = None
    """The rule that decided it, in words, and where it is written; None where analysis did."""
    source: str | None = None

    def to_json(self) -> dict[str, Any]:
        named = {} if self.rule is None else {"rule": self.rule, "source": self.source}
        return {"command": self.command, "action": self.action, "reason": self.reason, **named}


@dataclass(frozen=True, slots=True)
class Delegation:
    """A program that is asked whether a call may go ahead."""

    to: str
    rule: str
    source: str


@dataclass(frozen=True, slots=True)
class Allowable:
    """What could be allowed for good, no wider than what was seen."""

    label: str
    rule: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "rule": dict(self.rule)}


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one call, by whom, and under which rule."""

    action: Action
    layer: str
    """The layer that decided: `enablement`, `pins` (a definition that nobody has agreed to), `rules`, `analysis` (of a
    command), `built-in` (haft's own rules), `delegate`, or `approval` (a person, or nobody to ask)."""
    rule: str
    """The rule in words."""
    source: str
    """Where the rule is written."""
    by: DecidedBy
    reason: str
    parts: tuple[DecidedPart, ...] = ()
    profile: Profile = "workspace"
    """The sandbox it may run in, where it runs in one."""
    neutral: bool = False
    """Whether nobody looked at it: see `Confinement.neutral`."""
    unasked: bool = False
    """Whether it passes although no person and no rule approved it: analysis found that it only reads, or haft or the
    embedding program declares that."""
    grants: Grants = NO_GRANTS
    message: str | None = None
    """What the rule tells the model, where it rejects."""
    delegates: tuple[Delegation, ...] = ()
    """Whom to ask first, where the action is `delegate`; when all allow, `otherwise` holds."""
    otherwise: Action = "allow"
    to_allow: tuple[Allowable, ...] = ()
    """What a person who is asked could allow for good."""
    pin: str | None = None
    """The digest of the definition, files included, that a yes would be bound to."""
    definition: Mapping[str, Any] | None = None
    """That definition itself, where a yes has to be kept with it."""
    definition_diff: str | None = None
    """How the definition differs from the one that was agreed to."""
    activated: str | None = None
    """The state of the activated environment in the workspace whose programs are on its PATH; None: they are not."""
    environment: tuple[str, Mapping[str, Any]] | None = None
    """The digest and the programs of that environment, where a yes has to be kept with them."""

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
    """What a person is asked: the whole call, as it would run."""

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
    """What will confine it; the answer may add grants."""
    withheld: tuple[str, ...] = ()
    """Variables that the tool names, that are set here, and that it does not get unless the answer grants them."""
    diff: str | None = None
    """What it changed, where it was tried and waits to be committed."""
    output: str | None = None
    """What it printed, where it was tried."""
    preview: str | None = None
    """What the tool itself says that it would do. The arguments say what it is given."""
    parts: tuple[DecidedPart, ...] = ()
    """What was found in its command, part by part."""
    to_allow: tuple[Allowable, ...] = ()
    """What an answer could allow for good, by number."""
    definition_diff: str | None = None
    """How the tool's definition differs from the one that was agreed to before."""
    pin: str | None = None
    """The digest of the definition that a yes is bound to; of the requirements where `build` is set."""
    build: str | None = None
    """Where the question is whether packages are built, which runs code of their authors: the command that allows it
    beforehand. There is only yes and no: grants, other arguments and a longer scope mean nothing."""
    chain: tuple[str, ...] = ()
    """The runs that led here, outermost first: each waits for the answer."""
    chain_tools: tuple[str, ...] = ()
    """What each of them is a call of."""
    revise: Callable[[Mapping[str, Any]], Awaitable[ApprovalRequest]] | None = field(
        default=None, compare=False, repr=False
    )
    """The same question with other arguments, validated and decided again: for whoever edits them. Raises where the
    tool cannot be called with them."""
    id: str | None = None
    """Its name in the inbox, where another process may answer it too."""
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """What a person answers. Edited arguments are validated and decided again."""

    approved: bool
    message: str | None = None
    """Told to the model where the answer is no; the reason in the audit log either way."""
    arguments: Mapping[str, Any] | None = None
    grants: Grants | Mapping[str, Any] = NO_GRANTS
    """What opens the sandbox for this call, beyond what was asked for. Variables hold for as long as `scope` says; all
    else for this call alone."""
    scope: Scope = "once"
    """Whether calls like it shall pass unasked: in this thread, or always in this workspace."""
    allow: int = 0
    """Which of `to_allow` holds from now on, where the scope is more than `once`."""
    who: str | Principal | None = None
    """Who answered, where that is not whoever the service was opened for. An agent cannot approve."""


Approver = Callable[[ApprovalRequest], "Awaitable[bool | ApprovalAnswer] | bool | ApprovalAnswer"]
"""Whoever can be asked: a prompt at a terminal, a dialogue of the embedding program. A plain function will do where it
answers at once; one that waits must be asynchronous, or everything waits with it."""
