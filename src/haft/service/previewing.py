"""What a call would do, in the words of its tool, without calling it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from haft.contracts import (
    BadUsage,
    Call,
    EndedChild,
    InvalidArguments,
    Launcher,
    Limits,
    Outcome,
    Principal,
    RunId,
    Secrets,
    Stream,
    ThreadId,
    Tool,
    ToolName,
    Workspace,
    own_copy,
)
from haft.pipeline import preview_of
from haft.sandbox import not_found
from haft.schema import validator_for, why_not_json


class PreviewContext:
    """The context of a call that is not made: what is said goes nowhere."""

    cancelled = False
    run = RunId("")
    chain: tuple[RunId, ...] = ()

    def __init__(
        self,
        workspace: Workspace,
        launcher: Launcher,
        limits: Limits,
        *,
        principal: Principal,
        cwd: str,
        config: Mapping[str, Any],
        secrets: Secrets,
    ) -> None:
        self.workspace = workspace
        self.launcher = launcher
        self.limits = limits
        self.principal = principal
        self.thread = ThreadId(principal.thread or "")
        self.who = principal.who
        self.cwd = cwd
        self.config = config
        self.secrets = secrets
        self.env: Mapping[str, str] = {}

    def output(self, stream: Stream, data: bytes) -> None: ...

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        raise BadUsage(f"`{name}` was not called: a tool that is only asked what it would do makes no calls")

    def stderr_only(self, data: bytes, stream: Stream = "stderr") -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None: ...


async def preview(tool: Tool, arguments: Mapping[str, Any], context: PreviewContext) -> str | None:
    """The line that a tool has for these arguments; None where it has none. `InvalidArguments` where it could not be
    called with them."""
    given = own_copy(arguments)
    if tool.spec.preprocesses:
        given = await tool.preprocess(given, context)
    validator = validator_for(tool.spec.input_schema)
    if not validator.is_valid(given):
        raise InvalidArguments(tool.spec.name, validator.problems(given))
    if (problem := why_not_json(given)) is not None:
        raise InvalidArguments(tool.spec.name, [problem])
    call = Call(RunId(""), ToolName(tool.spec.name), given, context.principal, tool=tool, secrets=context.secrets)
    return await preview_of(call, context)


def missed_scratch(outcome: Outcome) -> bool:
    """Whether a call says that it looked for a file in `/tmp` that is not there."""
    return any(not_found(f"{outcome.output}\n{outcome.stderr}"))
