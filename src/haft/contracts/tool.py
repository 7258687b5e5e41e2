"""A tool, of any format: its description (`ToolSpec`), and the object that runs it (`Tool`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, runtime_checkable

from haft.contracts.change import Changes
from haft.contracts.confinement import NO_GRANTS, PLUGIN_ENTRY, Grants
from haft.contracts.errors import Failure
from haft.contracts.names import ToolName
from haft.contracts.ports import ToolContext
from haft.values import dataclass, field

Kind = Literal["builtin", "amp-toolbox", "bash-plugin", "agent-studio", "mcp", "python", "cli"]
"""The format of a tool."""

Provenance = Literal["builtin", "embedded", "installed", "user", "workspace"]
"""Where the tool comes from: from haft, the embedding program, an installed package, a folder of the user, or the
workspace. haft trusts the first most, and the last least."""

Hosting = Literal["in-process", "per-call", "session", "remote"]
"""Where the work of a call is done. `in-process`: in the host, without a sandbox. `per-call`: in processes that end
with the call. `session`: in a process that outlives the call, in one sandbox for all calls. `remote`: elsewhere,
where haft neither confines the call nor tracks its changes."""

TaskSupport = Literal["forbidden", "optional", "required"]
"""For MCP clients that know tasks: whether a call may become a task, always does (`required`), or becomes one at once
(`optional`). If a tool declares nothing, a call that takes long becomes a task. The spec has it in `meta`, as
`taskSupport`."""

DELEGATES: Final = "delegates"
"""The key in the `meta` of a tool of haft whose work is done by calls: see `ToolSpec.delegates`."""

State = Literal["ready", "broken", "duplicate", "disabled", "inactive", "needs-config", "changed", "unreachable"]


@dataclass(frozen=True, slots=True)
class Effects:
    """What the tool declares about its effects. If it declares nothing, haft assumes the worst."""

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
    """Everything that haft knows about a tool without running it."""

    name: ToolName
    kind: Kind
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    effects: Effects = Effects()
    provenance: Provenance = "embedded"
    origin: str = ""
    """Where the definition is: a module, a file, a server."""
    digest: str = ""
    """The digest of the definition. An approval is bound to it."""
    hosting: Hosting = "in-process"
    keeps_state: bool = True
    """For a session: whether its process keeps state between calls, so that this process must handle all of them. If
    not, a call with grants gets a process of its own."""
    grants: Grants = NO_GRANTS
    """For a session: the grants of its process. Other tools get their grants call by call."""
    timeout: float | None = None
    """The deadline in seconds that the tool's definition sets."""
    resumes: bool = False
    """Whether a call whose host has ended can go on in another host, under the id of its run: the tool finds there what
    it stored before."""
    preprocesses: bool = False
    """Whether `preprocess` does anything. If not, haft does not call it."""
    prepares: bool = False
    """Whether the tool has `prepare(progress) -> None`, which makes what its calls need, such as an environment. It
    runs before the deadline of the call starts."""
    trial_in_layer: bool = False
    """Whether the tool runs in the host, and changes files only through `context.workspace` and by the calls that it
    makes. Its trial run then works in a layer: its calls see the changes of each other, and none of these is in the
    workspace. Such a tool may have `wants_trial(arguments) -> bool`: whether a call is a trial run, although nobody
    asked for one."""
    previews: bool = False
    """Whether the tool has `preview(arguments, context) -> str`: a line that says what a call would do."""
    explains: bool = False
    """Whether the tool has `explain(arguments, context, exit_code, timed_out) -> str | None`, which explains a failed
    call."""
    commands: tuple[str, ...] = ()
    """The parameters that are command lines. Policy analyses them part by part."""
    paths: tuple[str, ...] = ()
    """The parameters that are paths in the workspace. Rules are matched against the real path."""
    reads: tuple[str, ...] | None = None
    """The parameters that name the paths a call reads. None: unknown. Empty: it reads no file of the workspace."""
    writes: tuple[str, ...] | None = None
    """The parameters that name the paths a call writes. None: unknown, unless the effects are `readonly`."""
    resource: str | None = None
    """The name of something that is no file and that the calls use one after another, such as `postgres:main`."""
    files: tuple[str, ...] = ()
    """The absolute paths of the tool's files. An approval holds until one of them changes."""
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_processes(self) -> bool:
        """Whether the tool runs in processes of this machine, which haft can confine."""
        return self.hosting in ("per-call", "session")

    @property
    def delegates(self) -> bool:
        """Whether all the work of the tool is done by calls with the same rights, so that it changes nothing itself."""
        return self.provenance == "builtin" and bool(self.meta.get(DELEGATES))

    @property
    def grants_entry(self) -> str | None:
        """Where a person writes grants for the tool's process; None if the tool gets its grants call by call."""
        if self.hosting != "session":
            return None
        server = self.meta.get("mcp")
        if server is None:
            return PLUGIN_ENTRY
        return str(server.get("entry") or f"below `[providers.{server['server']}]`")

    @property
    def is_vouched_for(self) -> bool:
        """Whether the tool's definition needs no approval, because haft or the embedding program defines it. An
        exported executable needs approval, even if it stands for such a tool."""
        return self.provenance in ("builtin", "embedded") and "export" not in self.meta

    @property
    def why_not_kept(self) -> str | None:
        """Why answers of this tool are never kept and given again; None if they may be."""
        effects = self.effects
        if self.kind == "builtin" and self.commands:
            return None  # haft looks at each command line.
        if self.provenance == "builtin" and effects.readonly and not effects.cacheable:
            return "to find out whether its files are unchanged costs about as much as the call"
        if not (effects.readonly and effects.cacheable):
            return (
                "it does not declare that it only reads (readonly) and that equal calls have equal answers (cacheable)"
            )
        if self.provenance == "workspace":
            return "what a tool of a workspace declares about itself does not count"
        if effects.network:
            return "it uses the network"
        if self.hosting in ("session", "remote"):
            return "its process outlives its calls"
        if self.hosting == "per-call" and self.provenance != "builtin" and not self.files:
            return "haft does not know its files"
        return None

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.strip().split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool returns at the end of a call. Output that the tool sent while it ran is not part of the answer."""

    text: str | None = None
    """The output, if the tool did not send it while it ran."""
    result: Any = None
    """The structured value, if the tool has one."""
    exit_code: int | None = None
    failure: Failure | None = None
    hit: str | None = None
    """The limit that stopped the tool; None if no limit did."""
    changes: Changes | None = None
    """The changes that the tool declares; None if it declares none."""
    content: tuple[Mapping[str, Any], ...] = ()
    """Images, sound, resources and links, in the form in which MCP writes content blocks."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a Python function returns if its result is more than one value: text, a structured value, and content such
    as images."""

    text: str = ""
    value: Any = None
    content: Sequence[Mapping[str, Any]] = ()
    """Content blocks that are no text, as MCP writes them: `{"type": "image", "data": BASE64, "mimeType": …}`."""
    is_error: bool = False
    """Whether the call failed; `text` then says why."""


@runtime_checkable
class Tool(Protocol):
    """The interface that tools of all formats have. A tool that gets secrets also has `secrets`, which are masked in
    everything that haft shows or records of its calls."""

    @property
    def spec(self) -> ToolSpec: ...

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Return the arguments that haft decides about, shows, records and runs. Called only if the spec has
        `preprocesses`."""
        ...

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        """Run the call. If it fails, raise an error, or return an answer with a `failure`. A cancellation arrives as
        `asyncio.CancelledError`."""
        ...


@dataclass(frozen=True, slots=True)
class RenamedTool:
    """A tool with another spec, mostly with another name that the catalogue gave it."""

    spec: ToolSpec
    tool: Tool

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return await self.tool.preprocess(arguments, context)

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        return await self.tool.invoke(arguments, context)

    def configured(self, config: Mapping[str, Any]) -> RenamedTool:
        return RenamedTool(self.spec, configured(self.tool, config))

    def __getattr__(self, name: str) -> Any:
        """The optional attributes of the wrapped tool, such as `prepare` and `preview`."""
        return getattr(self.tool, name)


def configured(tool: Tool, config: Mapping[str, Any]) -> Tool:
    """The tool with the configuration of one call. A tool without a method `configured` stays as it is. Raises
    `BadConfig` if a value is missing."""
    configure: Any = getattr(tool, "configured", None)
    return tool if configure is None else configure(config)


@dataclass(frozen=True, slots=True)
class DiscoveredTool:
    """What a source discovered: a tool, or the reason why it cannot be used."""

    spec: ToolSpec
    tool: Tool | None
    state: State = "ready"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """A tool as the catalogue lists it: it is ready, or there is a reason why not."""

    spec: ToolSpec
    state: State = "ready"
    reason: str | None = None
    source: str = ""
    """The name of the source that discovered the tool. At each refresh, that source replaces all its tools. Empty for
    tools that come from no such source."""

    @property
    def enabled(self) -> bool:
        return self.state == "ready"

    @property
    def why_not(self) -> str:
        """Why the tool cannot be called, as a part of a sentence."""
        states = {"needs-config": "needs configuration", "changed": "waits for your trust"}
        state = states.get(self.state, f"is {self.state}")
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


@dataclass(frozen=True, slots=True)
class AnswerBasis:
    """What the answers of a tool depend on, besides its arguments and the paths that it reads. A tool whose answers
    may be kept says so in a method `answer_basis(places) -> AnswerBasis`; `places` are the absolute paths that the call
    reads."""

    files: tuple[str, ...] = ()
    """Absolute paths of single files outside of these paths. They need not exist."""
    leaves_out: Mapping[str, Callable[[str], Iterable[str]]] = field(default_factory=dict)
    """Names of entries that the tool leaves out in every directory. For each, a function that gets the path of the
    entry, and returns the absolute paths of files that matter nevertheless."""
    follows_links: bool = True
    """Whether the tool may read the files to which links below the paths lead."""
    versions: tuple[str, ...] = ()
    """Texts that change when something else changes on which the answers depend."""
