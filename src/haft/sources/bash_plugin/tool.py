"""A bash tool plugin as a tool. Runs its subcommands `preview`, `run` and `error`."""

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
    needing_secrets,
)
from haft.sources.amp_toolbox.start_command import readable_paths
from haft.sources.bash_plugin.arguments import check_words, settings_of, with_defaults, words_of
from haft.sources.bash_plugin.discover import PluginFile
from haft.sources.identity import identity_at

TIMED_OUT: Final = 124
MAX_STDERR_TAIL: Final = 4_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings for all bash tools."""

    is_allowed: bool = False
    seconds: float = 60.0
    stream_stderr: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    """The values that tools may request by `config_keys`."""
    secrets: Secrets = NO_SECRETS
    """The secrets among the values of `config`."""
    unset: Mapping[str, str] = field(default_factory=dict)
    """The names in `config` that have no value, because an environment variable is not set, each with the reason."""


@dataclass(frozen=True, slots=True)
class BashPluginTool:
    """One bash script that was described."""

    spec: ToolSpec
    file: PluginFile
    known: Mapping[str, Any]
    policy: Policy

    @property
    def secrets(self) -> Secrets:
        return self.policy.secrets

    @property
    def secret_config(self) -> Mapping[str, Any]:
        """The settings of this tool that contain secrets of the person who makes a call."""
        return needing_secrets(self.policy.config, self.known["configKeys"]) if self.file.takes_config else {}

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Fill in defaults before anything is checked, and refuse arguments that cannot be passed."""
        filled = with_defaults(arguments, self.known)
        check_words(self.spec.name, filled, self.known)
        return filled

    async def preview(self, arguments: dict[str, Any], context: ToolContext) -> str:
        """The output of the script's subcommand `preview`; empty if that fails."""
        from haft.sources.brief_run import run_briefly

        words, stdin = words_of(arguments, self.known)
        output = await run_briefly(self._command(["preview", *words], stdin, context), context.launcher)
        return output.stdout.decode("utf-8", "replace") if output.exit_code == 0 else ""

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        if identity_at(self.file.path) != self.file.identity:
            raise ToolFailed(f"{self.file.path} has changed since the call started", hint="call it again")
        words, stdin = words_of(arguments, self.known)
        sink = _OutputSink(context, stream_stderr=self.policy.stream_stderr)
        end = await context.launcher.run(self._command(["run", *words], stdin, context), sink)
        failure = None if end.code == 0 else Failure("tool-failed", self._failed(end, sink.tail))
        return Answer(exit_code=end.code, failure=failure)

    async def explain(
        self, arguments: dict[str, Any], context: ToolContext, exit_code: int | None, timed_out: float | None
    ) -> str | None:
        """The output of the script's subcommand `error`; None if that fails or prints nothing."""
        from haft.sources.brief_run import run_briefly

        code = TIMED_OUT if timed_out is not None else exit_code
        if code is None:
            return None
        words, stdin = words_of(arguments, self.known)
        timeout = {} if timed_out is None else {
            "AGENT_TOOL_TIMED_OUT": "1", "AGENT_TOOL_TIMEOUT_SECONDS": f"{timed_out:g}"
        }  # fmt: skip
        output = await run_briefly(
            self._command(["error", str(code), *words], stdin, context, timeout), context.launcher
        )
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
                readable_paths(self.file.path, self.file.folder, from_workspace=self.file.provenance == "workspace")
            ),
        )

    def _failed(self, end: Exit, tail: str) -> str:
        how = f"was ended by signal {end.signal}" if end.signal is not None else f"exited {end.code}"
        return f"`{self.spec.name}` {how}" + (f": {tail}" if tail else "")


class _OutputSink:
    """Passes stdout on at once. stderr is always kept, and also passed on if the policy has `stream_stderr`."""

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

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._context.processes_ended(children)


def spec_of(known: Mapping[str, Any], file: PluginFile, policy: Policy) -> ToolSpec:
    """The spec of a tool, from its cache entry."""
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
