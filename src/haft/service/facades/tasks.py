"""Tasks of sub-agents: what the tool `task` needs from a host, and the methods of the service for tasks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from haft.agents import (
    GO_ON,
    AgentType,
    AgentTypes,
    ModelCall,
    SubagentSettings,
    TaskOptions,
    allowed_tools,
    system_prompt,
)
from haft.contracts import (
    TERMINAL,
    BadUsage,
    HaftError,
    Outcome,
    Principal,
    Rights,
    RunId,
    ToolContext,
    ToolSpec,
    UnknownRun,
    as_rights,
    new_run_id,
    outcome_from,
    rights_from,
)
from haft.pipeline import BatchedCall, Run
from haft.runs import RunRecord
from haft.service.agent_types import find_agent_types, model_of
from haft.service.assembly import Host
from haft.service.facades.batches import BatchRun
from haft.storage import ConversationFiles
from haft.values import replace

KILLED_AT_END = "the host was killed when the call had done its work: what it wrote is not known"
_UNFINISHED = ("interrupted", "worker-lost")


class HostTasks:
    """The tasks of one host. The tool `task` uses it as its `TaskHost`."""

    def __init__(self, host: Host, call: Callable[..., Run], batch: Callable[..., BatchRun]) -> None:
        self._host = host
        self._call = call
        self._batch = batch
        self._files = ConversationFiles(host.home.conversations)
        self._tool = host.task

    # For programs and people.

    def start(
        self, prompt: str, *, context: str | None = None, agent: str | None = None, model: str = "", **options: Any
    ) -> Run:
        """Start a task. Returns its run, without waiting for its end. Other `options`: those of `service.call`."""
        given = {"prompt": prompt, "context": context, "agent": agent}
        arguments = {name: value for name, value in given.items() if value is not None}
        return self._start(arguments, TaskOptions(model=model), options)

    def resume(self, task: str, prompt: str | None = None, *, model: str = "", **options: Any) -> Run:
        """Go on with an ended task: a new run with the conversation so far. `prompt` is what the sub-agent is told; the
        default is to go on. The rights of those who started the task still hold. Raises `BadUsage` if the task has not
        ended, if nothing is stored of it, or if it belongs to another workspace."""
        record = self._host.history().find(task)
        if record.is_open:
            raise BadUsage(f"{record.id} has not ended", hint=f"`haft watch {record.id}` follows it")
        if record.record["workspace"] != self._host.root.root:
            raise BadUsage(
                f"{record.id} belongs to the workspace {record.record['workspace']}", hint="open a service there"
            )
        stored = self.read_conversation(record.id)
        if stored is None:
            raise BadUsage(
                f"nothing is stored of the conversation of {record.id}",
                hint="only tasks of sub-agents that have begun can be resumed",
            )
        agent = record.record["arguments"].get("agent")
        arguments = {"prompt": prompt or GO_ON, **({"agent": agent} if agent else {})}
        options["rights"] = (*_rights_in(stored), *as_rights(options.get("rights")))
        return self._start(arguments, TaskOptions(record.id, model), options)

    def _start(self, arguments: Mapping[str, Any], options: TaskOptions, more: Mapping[str, Any]) -> Run:
        run = new_run_id()
        self._tool.options[run] = options
        try:
            return self._call(self._tool.spec.name, arguments, run_id=run, **more)
        except BaseException:
            del self._tool.options[run]
            raise

    # For the tool.

    @cached_property
    def _types(self) -> AgentTypes:
        host = self._host
        return find_agent_types(host.workspace, host.home.path, host.config, host.environ)

    @property
    def settings(self) -> SubagentSettings:
        values = self._host.config.values
        own = {name.removeprefix("subagents."): each for name, each in values.items() if name.startswith("subagents.")}
        return SubagentSettings(
            own["model"], own["base_url"], own["temperature"], own["output_tokens"], own["isolation"], own
        )

    def type_named(self, name: str) -> AgentType:
        return self._types.named(name)

    def model_for(self, kind: AgentType) -> str:
        return model_of(kind, self._host.config).name

    def system_prompt(self, kind: AgentType) -> str:
        return system_prompt(kind)

    def tools_of(self, kind: AgentType, context: ToolContext) -> tuple[Sequence[ToolSpec], Sequence[str]]:
        listings = self._host.catalogue.listings(all=True, thread=context.thread)
        allowed = allowed_tools(kind, listings)
        specs = {str(one.spec.name): one.spec for one in listings}
        rights = self.rights_above(context)
        left_out = dict(allowed.left_out)
        found = []
        for name in allowed.names:
            why = next(filter(None, (each.why_not(specs[name]) for each in rights)), None)
            if why is None:
                found.append(specs[name])
            else:
                left_out[name] = why.replace(f"`{name}`", "the tool")  # The same reason for all such tools.
        notes = _notes(left_out)
        if not found:
            raise BadUsage(
                f"the sub-agent `{kind.name}` was not started, because none of its tools is here",
                hint="; ".join(notes) or None,
            )
        return found, notes

    def rights_above(self, context: ToolContext) -> tuple[Rights, ...]:
        return self._host.running().caller(context.run).call.rights

    def start_calls(
        self, calls: Sequence[ModelCall], context: ToolContext, thread: str, rights: Rights
    ) -> Sequence[Run]:
        for call in calls:
            if call.resumes is not None:
                self._tool.options[call.run] = TaskOptions(call.resumes)
        who = Principal(context.who, thread, "sub-agent")
        options: dict[str, Any] = {"parent": context.run, "who": who, "cwd": context.cwd, "rights": rights}
        if len(calls) == 1:
            return [self._call(calls[0].tool, calls[0].arguments, run_id=calls[0].run, **options)]
        made = [BatchedCall(str(number), call.tool, call.arguments) for number, call in enumerate(calls, 1)]
        started = self._batch(made, run_ids=[call.run for call in calls], **options)
        return started.runs

    async def outcome_before(self, call: ModelCall) -> tuple[ModelCall, Outcome | None]:
        record = await self._host.with_history(lambda history: _found(history.find, call.run))
        again = replace(call, run=new_run_id(), resumes=None)
        if record is None:
            return again, None
        if record.status not in TERMINAL:
            return call, None  # It waited for a person when its host ended, and is taken up as the same run.
        outcome = outcome_from(record.outcome)
        if outcome.error is None or outcome.error.code not in (*_UNFINISHED, "cancelled"):
            return call, outcome
        if self._is_task(call.tool) and self.read_conversation(call.run) is not None:
            return replace(again, resumes=call.run), None
        if await self._was_committed(call.run):
            done = replace(
                outcome.error, message="the host was killed when the call had done its work", retryable=False
            )
            return call, replace(outcome, status="done", error=None, notes=(done.message,))
        return again, None

    def _is_task(self, tool: str) -> bool:
        with contextlib.suppress(HaftError):
            return bool(self._host.catalogue.get(tool, self._host.thread).spec.delegates)
        return False

    async def _was_committed(self, run: RunId) -> bool:
        selector = self._host.tracking.engine_selector()
        return await asyncio.to_thread(lambda: selector.state(run) == "committed")

    def read_conversation(self, task: str) -> bytes | None:
        return self._files.read(task)

    async def write_conversation(self, task: str, text: bytes) -> None:
        masked = self._host.known().masked_bytes(text)
        await asyncio.to_thread(self._files.write, task, masked)

    async def forget_thread(self, thread: str) -> None:
        host = self._host

        def forget() -> None:
            scratch = host.sandbox.scratch
            if scratch is not None:
                scratch.forget(thread)

        await asyncio.to_thread(forget)
        await host.people.forget_thread(thread)


def _notes(left_out: Mapping[str, str]) -> list[str]:
    """What is said about tools that a type names but does not get, one sentence for each reason."""
    names: dict[str, list[str]] = {}
    for name, why in left_out.items():
        names.setdefault(why, []).append(f"`{name}`")
    return [
        f"{', '.join(those)} {'was' if len(those) == 1 else 'were'} left out: {why}" for why, those in names.items()
    ]


def _rights_in(conversation: bytes) -> tuple[Rights, ...]:
    """The rights of those who started a task, in its stored conversation. Raises `BadUsage` if it is damaged."""
    try:
        facts = json.loads(conversation.partition(b"\n")[0])
        return tuple(map(rights_from, facts["rights"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadUsage(f"the conversation of the task is damaged: {error}", hint="start a new task") from None


def _found(find: Callable[[str], RunRecord], run: str) -> RunRecord | None:
    try:
        return find(run)
    except UnknownRun:
        return None
