"""A bash tool plugin as a tool: `schema` said what it is; `preview`, `run` and `error` are called here."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from haft.contracts import (
    NO_SECRETS,
    Answer,
    Command,
    EndedChild,
    Exit,
    Failure,
    Secrets,
    Stream,
    ToolContext,
    ToolFailed,
    ToolName,
    ToolSpec,
)
from haft.sources.amp_toolbox.start_command import own_places
from haft.sources.bash_plugin.arguments import check_words, settings_of, with_defaults, words_of
from haft.sources.bash_plugin.discover import PluginFile
from haft.sources.identity import identity_at

TIMED_OUT: Final = 124
MAX_STDERR_TAIL: Final = 4_000


@dataclass(frozen=True, slots=True)
class Policy:
    """What configuration says about all bash tools."""

    is_allowed: bool = False
    seconds: float = 60.0
    stream_stderr: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    """Values that tools may declare to want."""
    secrets: Secrets = NO_SECRETS
    """Which of them are secret."""
    unset: Mapping[str, str] = field(default_factory=dict)
    """Names of values that there would be if a variable were set, and why there are none."""


@dataclass(frozen=True, slots=True)
class BashPluginTool:
    """One file."""

    spec: ToolSpec
    file: PluginFile
    known: Mapping[str, Any]
    policy: Policy

    @property
    def secrets(self) -> Secrets:
        return self.policy.secrets

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Defaults are filled in before anything is checked; what cannot be passed is refused at once."""
        filled = with_defaults(arguments, self.known)
        check_words(self.spec.name, filled, self.known)
        return filled

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> str:
        """Its own line; nothing where it fails."""
        from haft.sources.brief_run import run_briefly

        words, stdin = words_of(arguments, self.known)
        output = await run_briefly(self._command(["preview", *words], stdin, context), context.launcher)
        return output.stdout.decode("utf-8", "replace") if output.exit_code == 0 else ""

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        if identity_at(self.file.path) != self.file.identity:
            raise ToolFailed(f"{self.file.path} was changed while the call was on its way", hint="call it again")
        words, stdin = words_of(arguments, self.known)
        sink = _OutputSink(context, stream_stderr=self.policy.stream_stderr)
        end = await context.launcher.run(self._command(["run", *words], stdin, context), sink)
        failure = None if end.code == 0 else Failure("tool-failed", self._failed(end, sink.tail))
        return Answer(exit_code=end.code, failure=failure)

    async def explain(
        self, arguments: dict[str, Any], context: ToolContext, exit_code: int | None, timed_out: float | None
    ) -> str | None:
        """What its `error` says, if it exits 0 and says anything."""
        from haft.sources.brief_run import run_briefly

        code = TIMED_OUT if timed_out is not None else exit_code
        if code is None:
            return None
        words, stdin = words_of(arguments, self.known)
        late = {} if timed_out is None else {
            "AGENT_TOOL_TIMED_OUT": "1", "AGENT_TOOL_TIMEOUT_SECONDS": f"{timed_out:g}"
        }  # fmt: skip
        output = await run_briefly(self._command(["error", str(code), *words], stdin, context, late), context.launcher)
        text = output.stdout.decode("utf-8", "replace")
        return text if output.exit_code == 0 and text.strip() else None

    def _command(
        self, words: Sequence[str], stdin: bytes, context: ToolContext, more: Mapping[str, str] | None = None
    ) -> Command:
        config = {**(self.policy.config if self.file.takes_config else {}), **context.config}
        return Command(
            ["bash", self.file.path, *words],
            cwd=context.workspace.locate(context.cwd),
            env={
                **context.env,
                **settings_of(self.known["configKeys"], config),
                "AGENT_TOOL_PYTHON": sys.executable,
                **(more or {}),
            },
            stdin=stdin,
            readable=tuple(
                own_places(self.file.path, self.file.folder, is_workspaces=self.file.provenance == "workspace")
            ),
        )

    def _failed(self, end: Exit, tail: str) -> str:
        how = f"was ended by signal {end.signal}" if end.signal is not None else f"exited {end.code}"
        return f"`{self.spec.name}` {how}" + (f": {tail}" if tail else "")


class _OutputSink:
    """Stdout goes on as it comes; stderr where policy says so, and is kept in any case."""

    def __init__(self, context: ToolContext, *, stream_stderr: bool) -> None:
        self._context = context
        self._stream_stderr = stream_stderr
        self._masked = context.secrets.stream()
        self._last = b""

    @property
    def tail(self) -> str:
        from haft.sources.brief_run import stderr_summary

        return stderr_summary(self._last + self._masked.end())

    def output(self, stream: Stream, data: bytes) -> None:
        if stream == "stdout":
            self._context.output(stream, data)
            return
        self._last = (self._last + self._masked.feed(data))[-MAX_STDERR_TAIL:]
        if self._stream_stderr:
            self._context.output(stream, data)
        else:
            self._context.stderr_only(data)

    def ended(self, children: Sequence[EndedChild]) -> None:
        self._context.ended(children)


def spec_of(known: Mapping[str, Any], file: PluginFile, policy: Policy) -> ToolSpec:
    """The spec of a tool from what is known of it."""
    return ToolSpec(
        name=ToolName(known["name"]),
        kind="bash-plugin",
        description=known["description"],
        input_schema=known["inputSchema"],
        provenance=file.provenance,
        origin=file.path,
        digest=known["digest"],
        hosting="per-call",
        timeout=policy.seconds,
        preprocesses=True,
        previews=True,
        explains=True,
        files=tuple(dict.fromkeys((file.path, *file.files))),
        meta={
            "plugin": {
                "version": known["version"],
                "argsMode": known["mode"],
                "configKeys": list(known["configKeys"]),
                "reference": file.reference.written,
            }
        },
    )
