"""The tool `task`: a sub-agent works on a task with its own, narrower set of tools, and reports.

Its work is done only by calls, each of which is decided, recorded and undone like any other. So the tool itself needs
no approval. pydantic-ai is imported with the first task.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from haft.agents.agent_type import AgentType
from haft.agents.budget import Budget, BudgetLimits
from haft.agents.builtin_types import DEFAULT_TYPE
from haft.agents.ports import TaskContext, TaskHost
from haft.agents.progress import TaskProgress
from haft.agents.rights import rights_of
from haft.contracts import (
    DELEGATES,
    Answer,
    BadConfig,
    HaftError,
    RunId,
    ToolContext,
    ToolFailed,
    ToolName,
    ToolSpec,
)
from haft.files import digest_of
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.agents.conversation import Conversation
    from haft.agents.loop import Report, TaskLoop

NAME: Final = ToolName("task")
DESCRIPTION: Final = (
    "Delegate a self-contained task to a sub-agent, which works with its own set of tools and reports at the end. The "
    "sub-agent sees nothing of your conversation: say in `prompt` everything that it must know and what to report."
)
GO_ON: Final = "Go on with your task."


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What the program or the person that starts a task says about it, besides its arguments."""

    resumes: RunId | None = None
    """The task whose conversation goes on."""
    model: str = ""
    """The model, instead of that of the type."""


@dataclass(slots=True)
class LiveTask:
    """A task at work."""

    kind: AgentType
    budget: Budget
    children: asyncio.Semaphore
    modified: dict[str, str] = field(default_factory=dict)


class Task:
    """The tool. It can be listed before it has a host."""

    def __init__(self, described: Sequence[tuple[str, str]] = ()) -> None:
        """`described` are the names and descriptions of the types that can be used."""
        self._described = described
        self.host: Callable[[], TaskHost] | None = None
        self._live: dict[RunId, LiveTask] = {}
        self.options: dict[RunId, TaskOptions] = {}
        """By the id of a run that is about to start."""

    @cached_property
    def spec(self) -> ToolSpec:
        kinds = "; ".join(f"`{name}`: {what}" for name, what in self._described)
        agent: dict[str, Any] = {"type": "string", "description": f"The type of sub-agent. {kinds}".strip()}
        schema = {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "minLength": 1, "description": "The task, and what to report."},
                "context": {"type": "string", "description": "Facts that the sub-agent needs. It takes them as data."},
                "agent": {**agent, "default": DEFAULT_TYPE},
            },
            "required": ["prompt"],
            "additionalProperties": False,
        }
        definition = json.dumps([NAME, DESCRIPTION, schema], sort_keys=True).encode()
        return ToolSpec(
            name=NAME,
            kind="builtin",
            description=DESCRIPTION,
            input_schema=schema,
            provenance="builtin",
            origin=__name__,
            digest=digest_of(definition),
            reads=(),
            writes=(),
            meta={DELEGATES: True, "noDeadline": True},
            trial_in_layer=True,
            resumes=True,
        )

    async def preprocess(self, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    def wants_trial(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the sub-agent works in a layer of its own, because its type or a setting says so."""
        if self.host is None:
            return False
        host = self.host()
        try:
            kind = host.type_named(str(arguments.get("agent") or DEFAULT_TYPE))
        except HaftError:
            return False  # The call will fail.
        return (kind.isolation or host.settings.isolation) == "layer"

    async def invoke(self, arguments: dict[str, Any], context: ToolContext) -> Answer:
        progress = TaskProgress(context)
        options = self.options.pop(context.run, None) or TaskOptions()
        try:
            assert self.host is not None
            return await self._work(self.host(), arguments, cast("TaskContext", context), options, progress)
        except asyncio.CancelledError:
            if not cast("TaskContext", context).stays_open:
                progress.error("the task was cancelled")
            raise
        except HaftError as error:
            progress.error(error.message)
            raise
        except Exception as error:
            progress.error(f"{type(error).__name__}: {error}")
            raise

    async def _work(
        self,
        host: TaskHost,
        arguments: dict[str, Any],
        context: TaskContext,
        options: TaskOptions,
        progress: TaskProgress,
    ) -> Answer:
        try:
            from haft.agents.conversation import Conversation
            from haft.agents.loop import TaskLoop
            from haft.agents.requests import Requests, check_price, open_model
        except ImportError as error:
            raise BadConfig(
                f"sub-agents need the package pydantic-ai ({error})", hint="install it: pip install 'haft[agents]'"
            ) from None
        progress.status("starting", "")
        known = host.read_conversation(options.resumes or context.run)
        conversation = None if known is None else Conversation.from_bytes(known)
        if options.resumes is not None and conversation is None:
            raise ToolFailed(f"nothing is stored of the conversation of {options.resumes}", hint="start a new task")
        named = arguments.get("agent") or (DEFAULT_TYPE if conversation is None else conversation.agent)
        kind = host.type_named(named if options.resumes is None or conversation is None else conversation.agent)
        above = next((self._live[run] for run in context.chain if run in self._live), None)
        budget = Budget(
            BudgetLimits.of(host.settings.budget, kind.budget),
            lambda: context.elapsed,
            None if above is None else above.budget,
        )
        if budget.depth_left < 0:
            raise ToolFailed(
                f"no sub-agent was started: sub-agents nest at most {budget.limits.depth} deep",
                hint="do the task with your own tools",
            )
        tools, notes = host.tools_of(kind, context)
        tools = [spec for spec in tools if spec.name != NAME or budget.depth_left > 0]
        rights = rights_of(kind, tools)
        model_name = options.model or host.model_for(kind)
        if conversation is None:
            thread = f"{context.thread}:subtask:{context.run}"
            conversation = Conversation(context.run, kind.name, model_name, thread)
            conversation.ask(arguments["prompt"], arguments.get("context"))
        else:
            self._take_up(conversation, context, arguments, options)
            budget.spent = conversation.spent
        live = LiveTask(kind, budget, asyncio.Semaphore(budget.limits.children), conversation.modified)
        self._live[context.run] = live
        try:
            async with _place(above), open_model(model_name, host.settings.base_url) as model:
                check_price(model, budget)
                loop = TaskLoop(
                    host, context, kind, host.system_prompt(kind), tools, rights, budget, conversation, progress,
                    Requests(model, budget, progress),
                )  # fmt: skip
                report = await self._run(loop)
        finally:
            del self._live[context.run]
            if above is not None:
                above.modified |= conversation.modified
            if not context.stays_open:
                await asyncio.shield(asyncio.ensure_future(host.forget_thread(conversation.thread)))
        files = [{"path": path, "type": how} for path, how in sorted(conversation.modified.items())]
        progress.complete(report.summary, conversation.executions, files)
        return Answer(text=_with_notes(report.summary, notes), result=report.result)

    @staticmethod
    async def _run(loop: TaskLoop) -> Report:
        try:
            report = await loop.run()
        except HaftError:
            await loop.store_end("error")
            raise
        await loop.store_end("done" if report.cut_short is None else "cut short")
        return report

    @staticmethod
    def _take_up(
        conversation: Conversation, context: ToolContext, arguments: dict[str, Any], options: TaskOptions
    ) -> None:
        """Go on with a stored conversation: that of this run, which outlived its host, or that of an ended task."""
        if options.resumes is None:
            return
        was_over = conversation.ended is not None
        conversation.task = context.run
        conversation.thread = f"{context.thread}:subtask:{context.run}"
        conversation.ended = None
        conversation.spent = type(conversation.spent)()
        conversation.last_tokens = 0
        prompt = arguments["prompt"]
        if was_over or prompt != GO_ON:
            conversation.then_say = prompt


def _place(above: LiveTask | None) -> asyncio.Semaphore | _Free:
    """A place among the sub-agents that the caller may have at work at once."""
    return _Free() if above is None else above.children


class _Free:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: object) -> None: ...


def _with_notes(summary: str, notes: Sequence[str]) -> str:
    return summary if not notes else "\n".join([summary, "", *(f"Note: {note}" for note in notes)])
