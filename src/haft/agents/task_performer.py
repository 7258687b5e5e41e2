"""Performs the tasks of one host: each from its arguments, or from a stored conversation, to the report."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from haft.agents.agent_type import AgentType
from haft.agents.budget import Budget, BudgetLimits
from haft.agents.builtin_types import DEFAULT_TYPE
from haft.agents.ports import GO_ON, NAME, TaskContext, TaskHost, TaskOptions
from haft.agents.progress import TaskProgress
from haft.agents.rights import rights_of
from haft.contracts import Answer, BadConfig, HaftError, RunId, ToolFailed
from haft.values import dataclass, field

if TYPE_CHECKING:
    from haft.agents.conversation import Conversation
    from haft.agents.loop import Report, TaskLoop


LAYERED: Final = "What you changed before may not be in the workspace: read files again before you rely on them."
CANCELLED: Final = "Your task was cancelled, and all that you had changed was undone. Now it goes on:"


@dataclass(slots=True)
class LiveTask:
    """A task at work."""

    kind: AgentType
    budget: Budget
    children: asyncio.Semaphore
    modified: dict[str, str] = field(default_factory=dict)


class TaskPerformer:
    """Performs tasks."""

    def __init__(self, host: TaskHost) -> None:
        self._host = host
        self._live: dict[RunId, LiveTask] = {}

    async def perform(self, arguments: dict[str, Any], context: TaskContext, options: TaskOptions) -> Answer:
        """Perform one task, and tell those who watch how it goes. The last that they are told is `complete` or
        `error`."""
        progress = TaskProgress(context)
        try:
            return await self._perform(arguments, context, options, progress)
        except asyncio.CancelledError:
            if not context.stays_open:
                progress.error("the task was cancelled")
            raise
        except HaftError as error:
            progress.error(error.message)
            raise
        except Exception as error:
            progress.error(f"{type(error).__name__}: {error}")
            raise

    async def _perform(
        self, arguments: dict[str, Any], context: TaskContext, options: TaskOptions, progress: TaskProgress
    ) -> Answer:
        host = self._host
        try:
            await asyncio.to_thread(import_module, "haft.agents.loop")  # It takes a second.
            from haft.agents.conversation import Conversation
            from haft.agents.loop import TaskLoop
            from haft.agents.requests import Requests, check_price, open_model
        except ImportError as error:
            raise BadConfig(
                f"sub-agents need the package pydantic-ai ({error})",
                hint="in a checkout of haft: pip install '.[agents]'",
            ) from None
        progress.status("starting", "")
        known = host.read_conversation(options.resumes or context.run)
        conversation = None if known is None else Conversation.from_bytes(known)
        if options.resumes is not None and conversation is None:
            raise ToolFailed(f"nothing is stored of the conversation of {options.resumes}", hint="start a new task")
        named = arguments.get("agent") or (DEFAULT_TYPE if conversation is None else conversation.agent)
        kind = host.type_named(named if options.resumes is None or conversation is None else conversation.agent)
        above = next((self._live[run] for run in context.chain if run in self._live), None)
        waited = 0.0
        budget = Budget(
            BudgetLimits.of(host.settings.budget, kind.budget),
            lambda: context.elapsed - waited,
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
        taken_over = None if conversation is None or options.resumes is not None else conversation.model
        model_name = taken_over or options.model or host.model_for(kind)
        if conversation is None:
            thread = f"{context.thread}:subtask:{context.run}"
            conversation = Conversation(context.run, kind.name, model_name, thread, host.rights_above(context))
            conversation.ask(arguments["prompt"], arguments.get("context"))
        else:
            self._take_up(conversation, context, arguments, options)
            budget.spent = conversation.spent
        conversation.is_layered = context.works_in_layer
        live = LiveTask(kind, budget, asyncio.Semaphore(budget.limits.children), conversation.modified)
        self._live[context.run] = live
        try:
            async with _place(above), open_model(model_name, host.settings.base_url) as model:
                waited = context.elapsed  # For a place among the sub-agents of the caller.
                check_price(model, budget)
                loop = TaskLoop(
                    host, context, kind, host.system_prompt(kind), tools, rights, budget, conversation, progress,
                    Requests(model, budget, progress),
                )  # fmt: skip
                report = await self._run(loop, context)
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
    async def _run(loop: TaskLoop, context: TaskContext) -> Report:
        try:
            report = await loop.run()
        except HaftError:
            await loop.store_end("error")
            raise
        except asyncio.CancelledError:
            if not context.stays_open:
                await loop.store_cancelled()
            raise
        await loop.store_end("done" if report.cut_short is None else "cut short")
        return report

    def _take_up(
        self, conversation: Conversation, context: TaskContext, arguments: dict[str, Any], options: TaskOptions
    ) -> None:
        """Go on with a stored conversation: that of this run, which outlived its host, or that of an ended task."""
        if options.resumes is None:
            return
        was_over, was_cancelled = conversation.ended is not None, conversation.ended == "cancelled"
        conversation.continues = options.resumes
        conversation.task = context.run
        conversation.thread = f"{context.thread}:subtask:{context.run}"
        conversation.rights = self._host.rights_above(context)
        conversation.ended = None
        conversation.spent = type(conversation.spent)()
        conversation.executions.clear()  # What follows is about this run, which is undone on its own.
        conversation.modified.clear()
        conversation.last_tokens = 0
        prompt = arguments["prompt"]
        if was_over or prompt != GO_ON:
            conversation.then_say = f"{CANCELLED} {prompt}" if was_cancelled else prompt
        if conversation.is_layered and not was_cancelled:
            conversation.then_say = f"{LAYERED} {conversation.then_say or prompt}"


def _place(above: LiveTask | None) -> asyncio.Semaphore | _Free:
    """A place among the sub-agents that the caller may have at work at once."""
    return _Free() if above is None else above.children


class _Free:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: object) -> None: ...


def _with_notes(summary: str, notes: Sequence[str]) -> str:
    return summary if not notes else "\n".join([summary, "", *(f"Note: {note}" for note in notes)])
