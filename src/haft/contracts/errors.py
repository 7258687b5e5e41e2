"""Every error that haft raises, in one tree. The branches say who must act next.

    HaftError
    ├── CallError                the model can correct the call
    │   ├── UnknownTool          unknown-tool        exit 2
    │   ├── InvalidArguments     invalid-arguments   exit 2
    │   │   └── PathEscapes      (a path that leaves the workspace)
    │   ├── ToolFailed           tool-failed         exit 1
    │   │   └── NeedsBuild       (a package must be built from source, and nobody has approved that)
    │   ├── TimedOut             timed-out           exit 4
    │   ├── LimitExceeded        limit-exceeded      exit 1
    │   │   └── ScratchFull      (the /tmp of a thread is too large)
    │   ├── SandboxDenied        sandbox-denied      exit 1
    │   ├── NotCovered           not-covered         exit 1 (an agent did not run its call through haft)
    │   ├── UnknownEnd           unknown-end         exit 1 (an agent never said that its call had ended)
    │   ├── Conflict             conflict            exit 5
    │   │   ├── AnsweredBefore   (somebody else has answered the request)
    │   │   └── ShownHasChanged  (a request does not show any more what the person saw)
    │   ├── Deadlock             deadlock            exit 5
    │   ├── Busy                 busy                exit 6
    │   └── DependencyFailed     dependency-failed   exit 130 (a call that it names in `after` failed)
    ├── PersonError              a person must decide or configure
    │   ├── Rejected             rejected            exit 3
    │   │   ├── OwnCall          (`approval.four_eyes`: somebody else must approve the call)
    │   │   └── NeedsPerson      (an agent tried to approve, apply or trust; only a person may do this)
    │   │       └── RefusedToClient  (a command of a person came from a process of a living client)
    │   ├── BadConfig            bad-config          exit 2
    │   ├── BadUsage             bad-usage           exit 2
    │   │   └── AmbiguousRun     (several run ids begin with the given text)
    │   ├── UnknownRun           unknown-run         exit 2
    │   ├── UnknownRequest       unknown-request     exit 2
    │   ├── UnknownWorkspace     unknown-workspace   exit 2 (a server has no workspace with this name)
    │   ├── KeyReused            key-reused          exit 2 (the key of a request stands for another request)
    │   └── KeyInUse             key-in-use          exit 6 (another process is about to begin the same request)
    ├── MachineError             the operator must repair the machine
    │   ├── StorageFailed        storage-failed      exit 1
    │   │   └── LeaseLost        (another process has taken over the runs of this host)
    │   ├── Unconfined           bad-config          exit 2 (the sandbox is required, but this machine lacks it)
    │   │   ├── NetworkOpen      bad-config          exit 2 (this machine cannot block the network, but must)
    │   │   └── NoNetworkByHost  bad-config          exit 2 (this machine cannot restrict the network to hosts)
    │   └── StartFailed          tool-failed         exit 1 (the tool could not be started)
    ├── BadApprover              bad-approver        exit 1 (the program that uses haft must be fixed)
    │   └── BadBatchApprover     (`approve_batch` did not return one answer for each request)
    └── Bug                      internal-error      exit 1 (haft must be fixed)

Each error has a stable code, a message, an optional hint, and whether a retry can help. Most classes build the message
from facts that the caller passes. `Failure` is an error in the form of a plain value, for outcomes and the audit log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from haft.values import dataclass

MAX_NAMED: Final = 5
"""How many choices a message lists at most."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a plain value, as outcomes have it."""

    code: str
    message: str
    hint: str | None = None
    retryable: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "hint": self.hint, "retryable": self.retryable}


class HaftError(Exception):
    """The base class. `str(error)` is the message for a person."""

    code: ClassVar[str] = "internal-error"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # Tracebacks show it.

    def failure(self) -> Failure:
        return Failure(self.code, self.message, self.hint, self.retryable)


class CallError(HaftError):
    """The call itself is wrong, or it failed. The caller can make a better call."""


class UnknownTool(CallError):
    code = "unknown-tool"
    exit_code = 2

    def __init__(
        self, name: str, known: Iterable[str], broken: Mapping[str, str] | None = None, plugins: Iterable[str] = ()
    ) -> None:
        """`broken` contains the tools that cannot be called, each with the reason. `plugins` are the names in `broken`
        that are plugins: the unknown tool may belong to one of them."""
        names, broken = sorted(known), broken or {}
        near = near_miss(name, names)
        meant = next((each for each in (name, f"tb__{name}") if each in broken), None)
        if meant is None and near is None:
            meant = near_miss(name, broken)
        message = f"there is no tool called `{name}`"
        hint = f"did you mean `{near}`?" if near else "`haft tools list` shows all tools"
        if meant is not None:
            message += f", and `{meant}` cannot be called: it is {broken[meant]}"
        elif suspects := [each for each in plugins if each in broken]:
            may_be = f"it may be a tool of the plugin `{suspects[0]}`, which is {broken[suspects[0]]}"
            hint = f"{hint} {may_be}" if near else may_be
        super().__init__(message, hint=hint)


class InvalidArguments(CallError):
    code = "invalid-arguments"
    exit_code = 2

    def __init__(self, tool: str, problems: Sequence[str], *, hint: str | None = None) -> None:
        self.problems = tuple(problems)
        if len(problems) == 1:
            message = f"`{tool}` cannot be called like this: {problems[0]}"
        else:
            lines = "".join(f"\n  - {problem}" for problem in problems)
            message = f"`{tool}` cannot be called like this:{lines}"
        super().__init__(message, hint=hint)


class PathEscapes(InvalidArguments):
    def __init__(self, path: str, why: str) -> None:
        CallError.__init__(
            self,
            f"`{path}` lies outside the workspace: {why}",
            hint="paths are relative to the workspace and may not leave it",
        )
        self.problems = (self.message,)


class ToolFailed(CallError):
    code = "tool-failed"


class NeedsBuild(ToolFailed):
    """An environment needs packages that have no wheel. `packages` are the packages without a wheel that are known so
    far, `requirements` is the digest of the requirements, and `command` is the command that builds the packages."""

    def __init__(self, message: str, packages: Sequence[str], requirements: str, command: str) -> None:
        self.packages = tuple(packages)
        self.requirements = requirements
        self.command = command
        super().__init__(message, hint=f"`{command}` builds it, which runs code of its authors")


class TimedOut(CallError):
    code = "timed-out"
    exit_code = 4
    retryable = True


class LimitExceeded(CallError):
    code = "limit-exceeded"

    def __init__(self, limit: str, value: float, what: str) -> None:
        self.limit = limit
        super().__init__(
            f"{what}; the limit is {value:_}",
            hint=f"`limits.{limit}` in your own configuration, or HAFT_LIMITS_{limit.upper()}, sets this limit",
        )


class ScratchFull(LimitExceeded):
    """The `/tmp` of a thread has too many bytes or files. The limit for bytes is nearly the same as the memory limit of
    a call; the limit for files is the number of files that a call may change."""

    def __init__(self, limit: str, value: float, used: float) -> None:
        what = "files" if limit == "max_changed_files" else "bytes"
        super().__init__(limit, value, f"the /tmp of its thread reached {used:_} {what} and was emptied")


class SandboxDenied(CallError):
    code = "sandbox-denied"

    def __init__(self, denied: str, evidence: str, grant: str, paths: Sequence[str] = ()) -> None:
        """`denied` names what was denied, and the reason: "a write: …". `paths` are those paths of the change set that
        were denied."""
        super().__init__(f"the sandbox denied {denied} ({evidence})", hint=grant)
        self.paths = tuple(paths)


class NotCovered(CallError):
    """An agent asked haft about a call, and then did not run the call through haft."""

    code = "not-covered"


class UnknownEnd(CallError):
    """An agent made a call with one of its own tools, and never said that the call had ended."""

    code = "unknown-end"

    def __init__(self, why: str) -> None:
        super().__init__(f"it is not known how the call ended: {why}")


class Conflict(CallError):
    code = "conflict"
    exit_code = 5
    retryable = True


class AnsweredBefore(Conflict):
    """Somebody else has answered the request first."""

    retryable = False

    def __init__(self, request: str, answered_by: str) -> None:
        """`answered_by` says who answered, and how."""
        self.answered_by = answered_by
        super().__init__(f"{request} was answered already: {answered_by}")


class ShownHasChanged(Conflict):
    """A person answered a request, and the request does not show any more what the person saw."""

    def __init__(self, request: str, digest: str) -> None:
        """`digest` is the digest of what the request shows now."""
        self.digest = digest
        super().__init__(
            f"{request} was not answered: what it shows has changed, and has now the digest {digest}",
            hint="look at it again (`haft inbox` shows it), and answer what it shows now",
        )


class Deadlock(CallError):
    """The call would have to wait for another call, which itself waits for this call."""

    code = "deadlock"
    exit_code = 5
    retryable = True


class Busy(CallError):
    """Too many calls are waiting already, so this call was not queued."""

    code = "busy"
    exit_code = 6
    retryable = True


class DependencyFailed(CallError):
    """A call of the same batch that this call depends on did not end with success. The run ends `cancelled`."""

    code = "dependency-failed"
    exit_code = 130


class PersonError(HaftError):
    """A person must decide or configure something."""


class Rejected(PersonError):
    code = "rejected"
    exit_code = 3


class NeedsPerson(Rejected):
    """An agent or a sub-agent tried an action that only a person may do."""

    def __init__(self, verb: str, who: str, kind: str) -> None:
        super().__init__(
            f"`{verb}` needs a person: {who} is {'an agent' if kind == 'agent' else f'a {kind}'}",
            hint="agents can call tools, reject, undo, redo, drop and cancel",
        )


class OwnCall(Rejected):
    """A person tried to approve a call of their own, and `approval.four_eyes` is set."""

    def __init__(self, who: str, what: str) -> None:
        super().__init__(
            f"{who} cannot approve {what}: `approval.four_eyes` is set, so somebody else must do it",
            hint="the call waits in the inbox for somebody else: `haft approve ID`",
        )


class RefusedToClient(NeedsPerson):
    """A command that counts as a person's came from a process that belongs, or may belong, to a living client."""

    def __init__(self, what: str, client: str, why: str) -> None:
        Rejected.__init__(
            self,
            f"`{what}` was refused: this process may belong to {client}, an agent that uses haft now: {why}",
            hint="type the command in a terminal window that the agent did not open, and does not run in",
        )


class BadConfig(PersonError):
    code = "bad-config"
    exit_code = 2


class BadUsage(PersonError):
    code = "bad-usage"
    exit_code = 2


class UnknownRun(PersonError):
    code = "unknown-run"
    exit_code = 2

    def __init__(self, run: str) -> None:
        hint = "it is a batch: name one of its runs (`haft log --json` lists them)" if run.startswith("b_") else None
        super().__init__(f"there is no run called `{run}`", hint=hint or "`haft log` lists the runs")


class AmbiguousRun(BadUsage):
    """The ids of several runs begin with the given prefix."""

    def __init__(self, name: str, newest: Sequence[str]) -> None:
        """`newest` describes the runs whose ids begin with `name`, the newest first."""
        more = ", …" if len(newest) > MAX_NAMED else ""
        super().__init__(
            f"more than one run begins with `{name}`: {', '.join(newest[:MAX_NAMED])}{more}",
            hint="give more characters of its id",
        )


class UnknownRequest(PersonError):
    code = "unknown-request"
    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"no request called `{name}` waits for an answer", hint="`haft inbox` lists the requests")


class UnknownWorkspace(PersonError):
    code = "unknown-workspace"
    exit_code = 2

    def __init__(self, name: str, near: str | None = None) -> None:
        hint = f"did you mean `{near}`?" if near else "GET /api/v1/workspaces lists the workspaces that you may enter"
        super().__init__(f"this server has no workspace called `{name}`", hint=hint)


class KeyReused(PersonError):
    code = "key-reused"
    exit_code = 2

    def __init__(self) -> None:
        super().__init__(
            "this idempotency key was sent before, with another request", hint="use a new key for each new request"
        )


class KeyInUse(PersonError):
    code = "key-in-use"
    exit_code = 6
    retryable = True

    def __init__(self) -> None:
        super().__init__("the same request is about to begin in another process", hint="send it again in a moment")


class MachineError(HaftError):
    """This machine failed or lacks something: its operator must repair it."""

    retryable = True


class StorageFailed(MachineError):
    code = "storage-failed"

    def __init__(self, what: str, cause: BaseException) -> None:
        super().__init__(
            f"{what}: {cause}", hint="`haft doctor` checks the state home, its disk space and its permissions"
        )


class LeaseLost(StorageFailed):
    """A host tried to write after another process had taken over its runs."""

    retryable = False

    def __init__(self, host: str) -> None:
        super(StorageFailed, self).__init__(
            f"host {host} has lost its lease: another process can end the runs of this host, or has ended them",
            hint="open the service again; `haft log` shows how its runs ended",
        )


class Unconfined(MachineError):
    code = "bad-config"
    exit_code = 2
    retryable = False

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"`sandbox.mode` is `required`, and this machine cannot confine the call: {missing}",
            hint='`haft doctor` says what is missing; `sandbox.mode = "auto"` uses the parts that this machine has',
        )


class NetworkOpen(Unconfined):
    """`sandbox.network` is `never`, and this machine cannot close the network."""

    def __init__(self, missing: str) -> None:
        super(Unconfined, self).__init__(
            f"`sandbox.network` is `never`, and this machine cannot close the network to the call: {missing}",
            hint="`haft doctor` says what is missing",
        )


class NoNetworkByHost(Unconfined):
    """Hosts were granted, and this machine cannot restrict a call to them."""

    def __init__(self, missing: str) -> None:
        super(Unconfined, self).__init__(
            f"the call was not run: this machine cannot restrict the network to the granted hosts: {missing}",
            hint="`haft doctor` says what is missing; without these grants, the call runs as this machine allows",
        )


class StartFailed(MachineError):
    code = "tool-failed"
    retryable = False


class BadApprover(HaftError):
    """The approver of the embedding program returned something that is neither yes nor no."""

    code = "bad-approver"

    def __init__(self, given: object, what: str = "the approver's answer") -> None:
        super().__init__(
            f"{what} is {type(given).__name__} {given!r:.80}, which is neither yes nor no: the call was not approved",
            hint="an approver returns True, False or an ApprovalAnswer, whose `approved` is True or False",
        )


class BadBatchApprover(BadApprover):
    """The method `approve_batch` of an approver did not return one answer for each request."""

    def __init__(self, given: object, requests: int) -> None:
        what = f"a list of {len(given)}" if isinstance(given, list | tuple) else f"{type(given).__name__} {given!r:.80}"
        super(BadApprover, self).__init__(
            f"`approve_batch` returned {what} for {requests} requests: no call was approved",
            hint="`approve_batch` returns a list with one answer for each request, in their order",
        )


class Bug(HaftError):
    """An unexpected exception in haft itself."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(
            f"haft itself failed: {type(cause).__name__}: {cause}", hint="this is a bug in haft: please report it"
        )


EXIT_CODES: Final[dict[str, int]] = {
    "unknown-tool": 2,
    "invalid-arguments": 2,
    "bad-config": 2,
    "bad-usage": 2,
    "unknown-run": 2,
    "unknown-request": 2,
    "unknown-workspace": 2,
    "rejected": 3,
    "timed-out": 4,
    "conflict": 5,
    "deadlock": 5,
    "key-reused": 2,
    "busy": 6,
    "key-in-use": 6,
    "dependency-failed": 130,
    "cancelled": 130,
}
"""The exit code of each error code. All other error codes exit 1."""


def _codes(kind: type[HaftError]) -> set[str]:
    return {kind.code}.union(*map(_codes, kind.__subclasses__()))


ERROR_CODES: Final = frozenset({*_codes(HaftError), "interrupted", "cancelled"})
"""The codes that the error of an outcome can have."""


def near_miss(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most similar to `word`; None if no known word is similar. The dashes before the name of
    an option do not count: otherwise `--al` would be similar to `--help`."""
    import difflib

    lowered = {name.lower().lstrip("-"): name for name in known}
    found = difflib.get_close_matches(word.lower().lstrip("-"), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None
