"""Previews a call: gets the line in which the tool says what the call would do, without making the call."""

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
    Question,
    QuestionAnswer,
    QuestionMethod,
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
    """The context of a tool that only previews a call. It drops all output and progress."""

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
        raise BadUsage(f"`{name}` was not called: a tool cannot call other tools during a preview")

    async def ask(self, *questions: Question) -> list[QuestionAnswer]:
        return [QuestionAnswer("cancel") for _ in questions]

    def can_ask(self, method: QuestionMethod = "elicitation/create") -> bool:
        return False

    def stderr_only(self, data: bytes, stream: Stream = "stderr") -> None: ...

    def program_log(self, text: str, *, is_shared: bool) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None: ...


async def preview(tool: Tool, arguments: Mapping[str, Any], context: PreviewContext) -> str | None:
    """The tool's preview line for these arguments; None if the tool has no preview. Raises `InvalidArguments` if the
    arguments do not fit the tool's schema."""
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
    """Whether the output of a call says that a file in `/tmp` is missing."""
    return any(not_found(f"{outcome.output}\n{outcome.stderr}"))
