"""One call on its way through the pipeline. Each stage may hand on a changed copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from haft.contracts.confinement import NO_GRANTS, Confinement, Grants, Layer
from haft.contracts.decision import Decision
from haft.contracts.errors import InvalidArguments
from haft.contracts.limits import LimitsApplied
from haft.contracts.names import RunId, ThreadId, ToolName
from haft.contracts.principal import Principal
from haft.contracts.secrets import NO_SECRETS, Secrets
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.contracts.tool import Tool


_SCALARS = frozenset({str, int, float, bool, type(None)})


def own_copy(value: Any) -> Any:
    """JSON values that nobody else holds: what is judged must not change before it runs. Subclasses become the plain
    thing; what is no JSON stays as it is, and validation refuses it. `InvalidArguments` for what contains itself."""
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
    """Who wants what done. The first fields come from the caller, the last are filled in by stages."""

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
    """What the tool was made of when it was found: paths, each with its device and inode."""
    decision: Decision | None = None
    limits: LimitsApplied | None = None
    confinement: Confinement | None = None
    layer: Layer | None = None
    preview: str | None = None
    """What the tool says that it would do."""
    trial: bool = False
    """Whether it is to be tried first: run, looked at, and then committed or not."""
    secrets: Secrets = NO_SECRETS
    """Values that are masked in everything that is said of the call. The tool gets them as they are."""

    @property
    def who(self) -> str:
        return self.principal.who

    @property
    def thread(self) -> ThreadId:
        return ThreadId(self.principal.thread or "")

    @property
    def subagent(self) -> bool:
        """Whether a sub-agent makes it: rules may tell these apart."""
        return self.principal.kind == "sub-agent"
