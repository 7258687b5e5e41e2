"""What a tool is, whatever format it came in: a description that travels, and something that can be invoked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from haft.contracts.change import Changes
from haft.contracts.confinement import NO_GRANTS, Grants
from haft.contracts.errors import Failure
from haft.contracts.names import ToolName
from haft.contracts.ports import ToolContext
from haft.values import dataclass, field

Kind = Literal["builtin", "amp-toolbox", "bash-plugin", "agent-studio", "mcp", "python", "cli"]
"""A tool's format."""

Provenance = Literal["builtin", "embedded", "installed", "user", "workspace"]
"""Who vouches for the tool: haft, the embedding program that handed it over, an installed package, the user whose
folder it lies in, or nobody but the workspace that it lies in."""

Hosting = Literal["in-process", "per-call", "session", "remote"]
"""Where a call's work is done: in the host itself, without a sandbox; in processes that end with the call; in one that
outlives it, in a sandbox that is the same for all calls; or elsewhere, where nothing is confined and nothing is
tracked."""

State = Literal["ready", "broken", "duplicate", "disabled", "inactive", "needs-config"]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a call of the tool may do to the world. Everything not claimed is assumed."""

    readonly: bool = False
    cacheable: bool = False
    network: bool = False
    idempotent: bool = False

    def to_json(self) -> dict[str, bool]:
        return {
            "readonly": self.readonly,
            "cacheable": self.cacheable,
            "network": self.network,
            "idempotent": self.idempotent,
        }


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Everything known of a tool without running it."""

    name: ToolName
    kind: Kind
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    effects: Effects = Effects()
    provenance: Provenance = "embedded"
    origin: str = ""
    """Where the definition stands: a module, a file, a server."""
    digest: str = ""
    """Of the definition: what an approval is bound to."""
    hosting: Hosting = "in-process"
    keeps_state: bool = True
    """Of a process that outlives its calls: whether only that process can answer them. Without a state, a call that is
    granted something is answered by a process of its own."""
    grants: Grants = NO_GRANTS
    """What the process that outlives its calls may reach, beyond reading the workspace. Others are granted things call
    by call."""
    timeout: float | None = None
    """The tool's own deadline in seconds, where its writer set one."""
    preprocesses: bool = False
    """Whether its `preprocess` does anything; only then is it called."""
    prepares: bool = False
    """Whether it has `prepare(told) -> None`: makes what a call needs besides, before its clock runs."""
    previews: bool = False
    """Whether it has `preview(arguments, context) -> str`: a line that says what a call would do."""
    explains: bool = False
    """Whether it has `explain(arguments, context, exit_code, timed_out) -> str | None`: what to say of a call that
    failed."""
    commands: tuple[str, ...] = ()
    """Parameters that are command lines: they are taken apart before anything is decided."""
    paths: tuple[str, ...] = ()
    """Parameters that are paths in the workspace: rules are held against where they really lead."""
    files: tuple[str, ...] = ()
    """The files that the tool is made of, absolute: an approval holds as long as none of them changes."""
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_processes(self) -> bool:
        """Whether its work is done in processes of this machine, which can be confined."""
        return self.hosting in ("per-call", "session")

    @property
    def is_vouched_for(self) -> bool:
        """Whether nobody has to agree to what it is. A file that stands for such a tool is another matter."""
        return self.provenance in ("builtin", "embedded") and "export" not in self.meta

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.strip().split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool hands back. Its streamed output is not in here: that went out while it ran."""

    text: str | None = None
    """The output, where the tool did not stream it."""
    result: Any = None
    """The structured value, where the tool has one."""
    exit_code: int | None = None
    failure: Failure | None = None
    hit: str | None = None
    """The limit that stopped it, if one did."""
    changes: Changes | None = None
    """What it changed; None: whatever its effects allow, untracked."""


@runtime_checkable
class Tool(Protocol):
    """The one shape that every format becomes. A tool that is handed secrets has `secrets`, too: they are masked in
    everything that is said of its calls."""

    @property
    def spec(self) -> ToolSpec: ...

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """The arguments as they shall be judged, shown, recorded and run. Called where the spec says `preprocesses`."""
        ...

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        """Do it. A failure is raised or answered; cancellation arrives as `asyncio.CancelledError`."""
        ...


@dataclass(frozen=True, slots=True)
class RenamedTool:
    """A tool under another spec: the name that a catalogue gave it, mostly."""

    spec: ToolSpec
    tool: Tool

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return await self.tool.preprocess(arguments, context)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        return await self.tool.invoke(arguments, context)

    def configured(self, config: Mapping[str, Any]) -> RenamedTool:
        return RenamedTool(self.spec, configured(self.tool, config))

    def __getattr__(self, name: str) -> Any:
        """What only some tools have."""
        return getattr(self.tool, name)


def configured(tool: Tool, config: Mapping[str, Any]) -> Tool:
    """The tool as one call configures it, where it has `configured`. `BadConfig` where that is not enough."""
    having: Any = getattr(tool, "configured", None)
    return tool if having is None else having(config)


@dataclass(frozen=True, slots=True)
class Found:
    """What a source found: a tool, or why there is none."""

    spec: ToolSpec
    tool: Tool | None
    state: State = "ready"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A tool as the catalogue shows it: ready, or not and why."""

    spec: ToolSpec
    state: State = "ready"
    reason: str | None = None
    source: str = ""
    """Who found it, where a source answers for all that it finds."""

    @property
    def enabled(self) -> bool:
        return self.state == "ready"

    @property
    def why_not(self) -> str:
        """Why it cannot be called, as the end of a sentence."""
        state = "needs configuration" if self.state == "needs-config" else f"is {self.state}"
        return f"it {state}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "name": spec.name,
            "kind": spec.kind,
            "description": spec.description,
            "inputSchema": dict(spec.input_schema),
            "outputSchema": None if spec.output_schema is None else dict(spec.output_schema),
            "effects": spec.effects.to_json(),
            "enabled": self.enabled,
            "state": self.state,
            "reason": self.reason,
            "origin": spec.origin,
            "digest": spec.digest,
            "meta": dict(spec.meta),
        }
