"""The loop of a sub-agent: ask the model, make the calls that it wants, and so on until it reports.

The conversation is stored before the calls of an answer are made and after their outcomes are known. So a task that was
killed goes on where it was, and repeats no call that has ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_ai.messages import InstructionPart, ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from haft.agents.agent_type import AgentType
from haft.agents.budget import REPORT_SECONDS, REPORT_TOKENS, SPENT_UP, Budget
from haft.agents.conversation import Conversation, tool_result
from haft.agents.ports import LiveCall, ModelCall, SubagentSettings, TaskHost
from haft.agents.progress import TaskProgress
from haft.agents.repeats import ENDED, POINTED_OUT, Repeats, pointed_out
from haft.agents.report import REPORT_TOOL, ReportSchema, summary_of_record
from haft.agents.requests import ContextFull, OutOfTime, Requests
from haft.contracts import MARK, HaftError, Outcome, Rights, ToolContext, ToolFailed, ToolSpec, new_run_id
from haft.schema import why_not_json
from haft.values import dataclass, replace

PAGER: Final = "make a call that shows less of it, such as a range of lines"
LONG_REPORT: Final = "its report was longer than one answer may be"
NO_RESULT: Final = "it gave no result in the form that its type demands"
TOO_LONG: Final = (
    "This call was cut off, because it is longer than one answer may be. It was not made. Write it in parts: several "
    "calls, each with less text."
)
ENDING: Final = "It was not made, because the task ended."
FULL: Final = 0.9
"""The part of the model's context that may be in use before old output is dropped."""
MAX_DEPTH: Final = 100
"""How deep the arguments of a call may nest."""
REPORT_NOW: Final = (
    "Your task must end now, because {why}. Make no more calls. Report what you have done, what you have found, and "
    "what is left to do."
)


@dataclass(frozen=True, slots=True)
class Report:
    """How a task ended."""

    summary: str
    result: Any = None
    cut_short: str | None = None
    """Why the task ended before the sub-agent was ready; None if it was ready."""


class TaskLoop:
    """The work of one sub-agent."""

    def __init__(
        self,
        host: TaskHost,
        context: ToolContext,
        kind: AgentType,
        system_prompt: str,
        tools: Sequence[ToolSpec],
        rights: Rights,
        budget: Budget,
        conversation: Conversation,
        progress: TaskProgress,
        requests: Requests,
    ) -> None:
        self._host = host
        self._context = context
        self._rights = rights
        self._budget = budget
        self._conversation = conversation
        self._progress = progress
        self._requests = requests
        self._repeats = Repeats()
        self._report_schema = None if kind.output is None else ReportSchema(kind.output)
        self._system_prompt = system_prompt
        settings: SubagentSettings = host.settings
        self._temperature = settings.temperature if kind.temperature is None else kind.temperature
        self._output_tokens = kind.output_tokens or settings.output_tokens
        self._tools = [
            ToolDefinition(
                name=spec.name,
                description=spec.description,
                parameters_json_schema=dict(spec.input_schema),
                strict=False,
            )
            for spec in tools
            if self._report_schema is None or spec.name != REPORT_TOOL
        ]
        if self._report_schema is not None:
            self._tools.append(self._report_schema.tool())
        self._times_cut_off = 0
        self._asked_for_report = 0

    async def run(self) -> Report:
        """Work until the sub-agent reports, or its budget is spent up."""
        conversation = self._conversation
        try:
            if conversation.pending:
                await self._go_on()
            if conversation.then_say:
                conversation.tell(conversation.then_say)
                conversation.then_say = ""
            await self._store()
            while True:
                why = self._budget.what_is_spent(conversation.last_tokens)
                if why is not None:
                    return await self._cut_short(why)
                response = await self._ask()
                report = await self._handle(response)
                if report is not None:
                    return report
        except OutOfTime:
            return await self._cut_short(self._budget.time_is_over)

    async def _ask(self) -> ModelResponse:
        """One request to the model. If the conversation is too long for it, old output is dropped."""
        self._budget.spent.cycles += 1
        self._progress.status("thinking", f"cycle {self._budget.spent.cycles} of {self._budget.limits.cycles}")
        window = self._requests.window
        if window is not None and self._conversation.last_tokens > FULL * window:
            self._drop_old_output()
        settings = ModelSettings(
            temperature=self._temperature,
            max_tokens=max(1, min(self._output_tokens << max(0, self._times_cut_off - 1), self._budget.tokens_left)),
        )
        while True:
            try:
                response = await self._requests.send(self._conversation.messages, self._parameters(), settings)
            except ContextFull:
                if not self._drop_old_output():
                    raise ToolFailed("the task is longer than the model can read") from None
            else:
                self._add(response)
                return response

    def _parameters(self) -> ModelRequestParameters:
        return ModelRequestParameters(
            function_tools=self._tools, instruction_parts=[InstructionPart(content=self._system_prompt)]
        )

    def _drop_old_output(self) -> bool:
        dropped = self._conversation.drop_old_output()
        if dropped:
            self._progress.status("thinking", "the conversation became too long: old output of tools was dropped")
            self._conversation.last_tokens = 0
        return dropped

    def _add(self, response: ModelResponse) -> None:
        self._conversation.messages.append(response)
        self._conversation.last_tokens = max(0, response.usage.total_tokens)

    # One answer of the model.

    async def _handle(self, response: ModelResponse) -> Report | None:
        """Make the calls of an answer. Returns the report if the answer is one."""
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        if not calls:
            return await self._finished(response)
        reported = next((call for call in calls if call.tool_name == REPORT_TOOL and self._report_schema), None)
        if reported is not None and len(calls) == 1:
            return await self._reported(reported, response.text or "")
        refused, wanted = self._sort(calls, is_cut_off=response.finish_reason == "length")
        self._conversation.pending = wanted
        await self._store()
        return await self._answer(calls, refused, await self._make(wanted))

    def _sort(self, calls: Sequence[ToolCallPart], *, is_cut_off: bool) -> tuple[dict[str, str], list[ModelCall]]:
        """The calls that are answered without being made, by their ids, and the calls to make."""
        refused: dict[str, str] = {}
        wanted: list[ModelCall] = []
        was_cut_off = False
        for call in calls:
            arguments, problem = _arguments_of(call)
            if call.tool_name == REPORT_TOOL and self._report_schema is not None:
                refused[call.tool_call_id] = "Call this tool alone, when all your other calls have ended."
            elif problem is not None and is_cut_off and call is calls[-1]:
                was_cut_off = True
                refused[call.tool_call_id] = TOO_LONG
            elif problem is not None:
                refused[call.tool_call_id] = f"The arguments cannot be read: {problem}. Make the call again."
            elif not self._budget.take_call():
                most = self._budget.limits.calls
                refused[call.tool_call_id] = f"{SPENT_UP}: a task may make at most {most} calls. It was not made."
            else:
                wanted.append(ModelCall(call.tool_call_id, new_run_id(), call.tool_name, arguments))
        self._times_cut_off = self._times_cut_off + 1 if was_cut_off else 0
        return refused, wanted

    async def _go_on(self) -> None:
        """Finish the calls of the latest answer, which an earlier host began."""
        response = self._conversation.messages[-1]
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        pending = self._conversation.pending
        known = {call.id for call in pending}
        refused = {call.tool_call_id: "It was not made." for call in calls if call.tool_call_id not in known}
        known_ends = [await self._host.outcome_before(call) for call in pending]
        unknown = [call.id for call, end in known_ends if end is None and MARK in str(call.arguments)]
        refused |= dict.fromkeys(unknown, "It was not made: it had a secret, which is not stored. Make the call again.")
        known_ends = [each for each in known_ends if each[0].id not in unknown]
        self._conversation.pending = [call for call, _end in known_ends]
        await self._store()
        again = [call for call, end in known_ends if end is None]
        made = dict(zip((call.id for call in again), await self._make(again), strict=True))
        for call, end in known_ends:
            if end is not None:
                self._note(call, end)
        await self._answer(calls, refused, [made[call.id] if end is None else (call, end) for call, end in known_ends])

    async def _make(self, wanted: Sequence[ModelCall]) -> list[tuple[ModelCall, Outcome]]:
        """Make calls at once, and wait until all have ended. When the time is over, they are cancelled."""
        if not wanted:
            return []
        self._progress.status("calling-tools", ", ".join(call.tool for call in wanted))
        live = self._host.start_calls(wanted, self._context, self._conversation.thread, self._rights)

        async def end_of(call: ModelCall, run: LiveCall) -> Outcome:
            outcome: Outcome = await run
            self._note(call, outcome)
            return outcome

        ends = [asyncio.ensure_future(end_of(*each)) for each in zip(wanted, live, strict=True)]
        try:
            while (left := self._budget.seconds_left) > 0:
                _, open_ends = await asyncio.wait(ends, timeout=left)
                if not open_ends:
                    break
            else:
                for run in reversed(live):
                    run.cancel()
            return list(zip(wanted, await asyncio.gather(*ends), strict=True))
        finally:
            for end in ends:
                end.cancel()

    def _note(self, call: ModelCall, outcome: Outcome) -> None:
        """Note that a call has ended."""
        conversation = self._conversation
        conversation.executions.append({"toolName": call.tool, "run": outcome.run_id, "status": outcome.status})
        for change in outcome.changes.files:
            if outcome.changes.state in ("committed", "held"):
                conversation.modified[change.path] = change.type
        self._progress.execution(call.tool, call.arguments, outcome, _text_of(outcome))

    async def _answer(
        self,
        calls: Sequence[ToolCallPart],
        refused: Mapping[str, str],
        outcomes: Sequence[tuple[ModelCall, Outcome]],
    ) -> Report | None:
        """Give the outcomes to the model. Returns a report if the task must end because it repeats itself."""
        results = dict(refused)
        most = 0
        for call, outcome in outcomes:
            text = _text_of(outcome)
            count = self._repeats.count(call.tool, call.arguments, outcome)
            most = max(most, count)
            results[call.id] = f"{text}\n\n{pointed_out(count)}" if count >= POINTED_OUT else text
        self._conversation.answer(
            [tool_result(call.tool_name, call.tool_call_id, results[call.tool_call_id]) for call in calls]
        )
        await self._store()
        return await self._cut_short(f"the same call was made {ENDED} times") if most >= ENDED else None

    # The end.

    async def _finished(self, response: ModelResponse) -> Report | None:
        """The report in an answer without calls; None if the sub-agent must still give a result."""
        text = response.text or ""
        if self._report_schema is None:
            if response.finish_reason == "length" and text.strip():
                return Report(f"Cut short: {LONG_REPORT}. {text.strip()}", cut_short=LONG_REPORT)
            return Report(text.strip() or summary_of_record(self._conversation))
        self._asked_for_report += 1
        if self._asked_for_report > 2:
            return Report(f"Cut short: {NO_RESULT}. {text}", cut_short=NO_RESULT)
        self._conversation.tell(f"End with a call of `{REPORT_TOOL}`, which takes the result of the task.")
        await self._store()
        return None

    async def _reported(self, call: ToolCallPart, text: str) -> Report | None:
        """The report in a call of the report tool; None if its result is not valid."""
        assert self._report_schema is not None
        arguments, problem = _arguments_of(call)
        problems = [problem] if problem else self._report_schema.problems(arguments)
        if not problems:
            result = self._report_schema.result(arguments)
            self._conversation.answer([tool_result(REPORT_TOOL, call.tool_call_id, "The result was taken.")])
            return Report(text.strip() or json.dumps(result, ensure_ascii=False), result)
        said = "The result is not valid: " + "; ".join(problems)
        self._conversation.answer([tool_result(REPORT_TOOL, call.tool_call_id, said)])
        await self._store()
        return None

    async def _cut_short(self, why: str) -> Report:
        """Ask the sub-agent once for its report, out of the reserve. If that fails, make one from the record."""
        self._progress.status("reporting", why)
        conversation = self._conversation
        if conversation.pending:
            conversation.answer(
                [tool_result(call.tool, call.id, f"{SPENT_UP}. It was not made.") for call in conversation.pending]
            )
        conversation.tell(REPORT_NOW.format(why=why))
        settings = ModelSettings(temperature=self._temperature, max_tokens=REPORT_TOKENS, tool_choice="none")
        if self._report_schema is not None:
            settings["tool_choice"] = [REPORT_TOOL]
        try:
            response = await self._requests.send(
                conversation.messages, self._parameters(), settings, seconds=REPORT_SECONDS
            )
        except (HaftError, ContextFull, OutOfTime):
            return Report(f"Cut short: {why}. {summary_of_record(conversation)}", cut_short=why)
        self._add(response)
        text, result = (response.text or "").strip(), None
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_name == REPORT_TOOL and self._report_schema is not None:
                arguments, problem = _arguments_of(part)
                if problem is None and not self._report_schema.problems(arguments):
                    result = self._report_schema.result(arguments)
                    text = text or json.dumps(result, ensure_ascii=False)
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        if calls:  # Whoever goes on with the task needs an answer to each of them.
            conversation.answer([tool_result(each.tool_name, each.tool_call_id, ENDING) for each in calls])
        return Report(f"Cut short: {why}. {text or summary_of_record(conversation)}", result, why)

    async def _store(self) -> None:
        conversation = self._conversation
        conversation.spent = replace(self._budget.spent, seconds=self._budget.seconds)
        await self._host.write_conversation(conversation.task, conversation.to_bytes())

    async def store_cancelled(self) -> None:
        """Store that the task was cancelled. Its calls do not go on, and what they changed is undone."""
        conversation = self._conversation
        last = conversation.messages[-1]
        if isinstance(last, ModelResponse):
            calls = [part for part in last.parts if isinstance(part, ToolCallPart)]
            if calls:
                conversation.answer([tool_result(call.tool_name, call.tool_call_id, ENDING) for call in calls])
        conversation.modified.clear()
        await self.store_end("cancelled")

    async def store_end(self, ended: str) -> None:
        """Store how the task ended."""
        self._conversation.ended = ended
        await self._store()


def _arguments_of(call: ToolCallPart) -> tuple[dict[str, Any], str | None]:
    """The arguments of a call, and what is wrong with them."""
    given = call.args
    problem: str | None
    try:
        arguments = json.loads(given) if isinstance(given, str) and given else given or {}
        problem = "they are nested too deeply" if _is_deep(arguments) else why_not_json(arguments)
    except RecursionError:
        arguments, problem = {}, "they are nested too deeply"
    except ValueError as error:
        return {}, f"they are not valid JSON ({error})"
    if problem is not None:
        call.args = {}  # Nothing could send them back to the model.
        return {}, problem
    return (arguments, None) if isinstance(arguments, dict) else ({}, "they are not an object")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for each in level
            if isinstance(each, dict | list)
            for item in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _text_of(outcome: Outcome) -> str:
    """The outcome of a call as the model reads it."""
    return outcome.for_model(pager=PAGER).text
