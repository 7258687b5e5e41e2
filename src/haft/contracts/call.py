"""One call, as it goes through the pipeline. A `Call` is immutable; a stage that changes the call replaces it with a
copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from haft.contracts.confinement import NO_GRANTS, Confinement, Grants, Layer
from haft.contracts.decision import Decision
from haft.contracts.errors import InvalidArguments
from haft.contracts.footprint import Footprint, Isolation
from haft.contracts.limits import LimitsApplied
from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.principal import Principal
from haft.contracts.rights import Rights
from haft.contracts.secrets import NO_SECRETS, Secrets
from haft.contracts.trace import Trace
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.contracts.attachment import Attachment
    from haft.contracts.tool import Tool


_SCALARS = frozenset({str, int, float, bool, type(None)})


def own_copy(value: Any) -> Any:
    """A deep copy of a JSON value. The caller has no reference to the copy, so arguments cannot change between the
    decision and the run. Instances of subclasses become plain dicts, lists and strings. A value that is not JSON stays
    as it is; validation refuses it later. Raises `InvalidArguments` if the value contains itself."""
    try:
        return _copied(value)
    except RecursionError:
        raise InvalidArguments("this tool", ["the arguments are nested too deeply"]) from None


def _copied(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return {
            key if type(key) is str else str(key): item if type(item) in _SCALARS else _copied(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [item if type(item) in _SCALARS else _copied(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    return value


@dataclass(frozen=True)
class Call:
    """Which tool is called, with which arguments, by whom. Whoever makes the call sets the fields from `run` to
    `grants`, the field `trial`, and a part of `secrets`; the stages set the other fields."""

    run: RunId
    name: ToolName
    arguments: Mapping[str, Any]
    principal: Principal
    parent: RunId | None = None
    timeout: float | None = None
    cwd: str = "."
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    grants: Grants = NO_GRANTS
    tool: Tool | None = None
    found: tuple[tuple[str, int, int], ...] = ()
    """The files of the tool when it was discovered: paths, each with its device and inode."""
    decision: Decision | None = None
    limits: LimitsApplied | None = None
    confinement: Confinement | None = None
    layer: Layer | None = None
    preview: str | None = None
    """The line in which the tool says what the call would do."""
    attachment: Attachment | None = None
    """The process outside haft to which the call is attached; None for most calls."""
    trial: bool = False
    """Whether this is a trial run: a person reviews the changes after the run, and applies or drops them."""
    holds: bool = False
    """Whether the changes are held however the call ends, until a person applies or drops them. Unlike in a trial run,
    the call itself was approved."""
    footprint: Footprint | None = None
    """What the call may read and write; None before its arguments are known."""
    isolation: Isolation | None = None
    """How the call is isolated from other callers; None: as a rule or the setting `changes.isolation` says."""
    batch: str | None = None
    """The id of the batch that the call belongs to."""
    key: str | None = None
    """A name that the program which made the call gave it, so that it finds the run again."""
    claim: str | None = None
    """The sentence in which the caller says why it makes the call: see `read_claim`. Nothing checks it."""
    rights: tuple[Rights, ...] = ()
    """What the call may do at most: the rights of each caller above it that has only some."""
    uses_cache: bool = True
    """Whether the call may be answered from the cache, and its answer may be stored there."""
    trace: Trace | None = None
    """The trace that the call belongs to: its own span if it has one, else that of its caller. None if there is no
    trace."""
    secrets: Secrets = NO_SECRETS
    """Values that are masked in everything that haft shows or records of the call. The tool gets them unmasked."""

    @property
    def who(self) -> str:
        return self.principal.who

    @property
    def thread(self) -> ThreadId:
        return ThreadId(self.principal.thread or "")

    @property
    def subagent(self) -> bool:
        """Whether a sub-agent makes the call: rules can match on that."""
        return self.principal.kind == "sub-agent"
