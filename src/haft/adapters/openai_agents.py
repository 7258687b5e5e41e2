"""haft's tools as tools of OpenAI's Agents SDK.

    haft = HaftTools(service)
    agent = Agent("…", tools=haft.tools())
    result = await Runner.run(agent, "…")
    while result.interruptions:  # Calls need approval: `await haft.asked(item)` says what a person must see.
        state = result.to_state()
        for item in result.interruptions:
            state.approve(item)  # or state.reject(item)
        result = await Runner.run(agent, state)

The SDK asks whether a call needs approval before it makes the call. But haft decides when the call is made. So the call
is made when the SDK asks, and its run pauses if it needs approval. If the call needs a second approval later, the model
reads that, and calls the tool `wait_for_approval`, which needs this approval.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from agents.items import ToolApprovalItem
from agents.tool_context import ToolContext

from agents import FunctionTool, RunContextWrapper, Tool, ToolOutputImage, ToolOutputText
from haft.adapters.tool_calls import PausedCall, ToolCalls
from haft.contracts import ApprovalAnswer, ModelAnswer

if TYPE_CHECKING:
    from haft.service import ToolService

WAIT_TOOL: Final = "wait_for_approval"
_WAIT_SCHEMA: Final = {
    "type": "object",
    "properties": {"call": {"type": "string", "description": "The id that the tool call has given you."}},
    "required": ["call"],
    "additionalProperties": False,
}
_AGAIN: Final = (
    "[haft] The call has begun, and needs another approval: {tool} ({reason}). It has not ended. Call "
    "`wait_for_approval` with the id `{call}` to go on with it."
)


class HaftTools:
    """The tools of a service. The options are those of `ToolCalls`."""

    def __init__(self, service: ToolService, **options: Any) -> None:
        self._calls = ToolCalls(service, "openai-agents:", **options)
        self._answers: dict[str, ModelAnswer] = {}
        """The answers of calls that have ended before the SDK has invoked their tools, by the ids of the calls."""
        self._waits: dict[str, str] = {}
        """The keys of the calls that calls of `wait_for_approval` wait for, by the ids of the latter."""

    def tools(self) -> list[Tool]:
        """The tools that can be called now."""
        made = [self._tool(*each) for each in self._calls.tools()]
        if all(each.name != WAIT_TOOL for each in made):
            description = "Go on with a tool call of yours that needs another approval."
            made.append(self._tool(WAIT_TOOL, description, _WAIT_SCHEMA))
        return [*made]

    async def asked(self, item: ToolApprovalItem) -> dict[str, Any] | None:
        """What a person must see before approving an interruption, as JSON; None if its call waits for nothing."""
        arguments = json.loads(item.arguments or "{}")
        state = await self._state(item.name or "", arguments, item.call_id or "")
        return state.to_json() if isinstance(state, PausedCall) else None

    def _tool(self, name: str, description: str, schema: dict[str, Any]) -> FunctionTool:
        async def needs_approval(_context: RunContextWrapper[Any], arguments: dict[str, Any], call: str) -> bool:
            state = await self._state(name, arguments, call)
            if isinstance(state, ModelAnswer):
                self._answers[call] = state
            return isinstance(state, PausedCall)

        async def invoke(context: ToolContext[Any], given: str) -> Any:
            return await self._invoke(name, given, context.tool_call_id)

        async def is_enabled(context: RunContextWrapper[Any], _agent: Any) -> bool:
            await self._settle(name, context)
            return True

        return FunctionTool(
            name=name,
            description=description,
            params_json_schema=schema,
            on_invoke_tool=invoke,
            strict_json_schema=False,
            needs_approval=needs_approval,
            is_enabled=is_enabled,
        )

    async def _state(self, name: str, arguments: dict[str, Any], call: str) -> PausedCall | ModelAnswer:
        """What has become of a call. The tool `wait_for_approval` stands for the call that it waits for."""
        if name != WAIT_TOOL:
            return await self._calls.call(name, arguments, _key(name, call))
        self._waits[call] = key = str(arguments.get("call"))
        return await self._calls.call(key.partition(":")[0], {}, key, exists=True)

    async def _invoke(self, name: str, given: str, call: str) -> Any:
        try:
            arguments = json.loads(given or "{}")
        except ValueError as error:
            return f"error (invalid-arguments): the arguments are not valid JSON: {error}"
        key = str(arguments.get("call")) if name == WAIT_TOOL else _key(name, call)
        state: PausedCall | ModelAnswer | None = self._answers.pop(call, None)
        if state is None:  # The SDK invokes a tool only after its call was approved.
            tool, yes = key.partition(":")[0], ApprovalAnswer(approved=True)
            was_made = await self._calls.answer(key, yes)
            state = await self._calls.call(tool, arguments, key, exists=True if name == WAIT_TOOL else None)
            if not was_made and isinstance(state, PausedCall) and not state.facts["chain"]:
                await self._calls.answer(key, yes)  # `always_approve`: the SDK did not ask about this call.
                state = await self._calls.call(tool, arguments, key)
        if isinstance(state, PausedCall):
            return _AGAIN.format(call=key, tool=state.facts["tool"], reason=state.facts["reason"])
        return _content(state)

    async def _settle(self, name: str, context: RunContextWrapper[Any]) -> None:
        """Reject the calls that were rejected: the SDK answers these itself, and invokes no tool."""
        for key in await self._calls.waiting():
            tool, _, call = key.partition(":")
            if name == WAIT_TOOL:
                tool, call = name, next((wait for wait in reversed(self._waits) if self._waits[wait] == key), "")
            if tool == name and context.is_tool_approved(name, call) is False:
                message = context.get_rejection_message(name, call)
                await self._calls.answer(key, ApprovalAnswer(approved=False, message=message))


def _key(name: str, call: str) -> str:
    return f"{name}:{call}"


def _content(answer: ModelAnswer) -> Any:
    """The answer as the SDK gives it to the model: the text, and images beside it."""
    images = [
        ToolOutputImage(image_url=f"data:{block['mimeType']};base64,{block['data']}")
        for block in answer.content
        if block.get("type") == "image"
    ]
    return [ToolOutputText(text=answer.text), *images] if images else answer.text
