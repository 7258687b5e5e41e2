"""haft's tools as a toolset of pydantic-ai.

    agent = Agent(model, toolsets=[HaftToolset(service)], output_type=[str, DeferredToolRequests])
    result = await agent.run("…")
    if isinstance(result.output, DeferredToolRequests):  # Calls need approval: `metadata` says what a person must see.
        answers = DeferredToolResults(approvals={…: True}, metadata=result.output.metadata)
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=answers)

A call that needs approval raises `ApprovalRequired`. Its run in haft stays paused until the agent run with the answers,
which may be in another process.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import AbstractToolset, ApprovalRequired, BinaryContent, RunContext, ToolDefinition, ToolReturn
from pydantic_ai.messages import ModelRequest, ToolReturnPart
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from haft.adapters.tool_calls import PausedCall, ToolCalls
from haft.contracts import ApprovalAnswer, ModelAnswer

if TYPE_CHECKING:
    from haft.service import ToolService

_ANY: Final = SchemaValidator(schema=core_schema.dict_schema())
"""haft checks the arguments itself, and says in words what is wrong."""


class HaftToolset(AbstractToolset[Any]):
    """The tools of a service. The options are those of `ToolCalls`."""

    def __init__(self, service: ToolService, *, id: str = "haft", **options: Any) -> None:  # noqa: A002  as pydantic-ai
        self._id = id
        self._calls = ToolCalls(service, f"pydantic-ai:{id}:", **options)

    @property
    def id(self) -> str:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        await self._settle(ctx)
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name, description=description, parameters_json_schema=schema, strict=False
                ),
                max_retries=ctx.max_retries or 1,
                args_validator=_ANY,
            )
            for name, description, schema in self._calls.tools()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> ToolReturn[str] | str:
        key = _key(ctx, ctx.tool_call_id)
        if ctx.tool_call_approved:
            seen = (ctx.tool_call_metadata or {}).get("request")
            await self._calls.answer(key, ApprovalAnswer(approved=True), seen, tool_args)
        state = await self._calls.call(name, tool_args, key, exists=None if ctx.tool_call_approved else False)
        if isinstance(state, PausedCall):
            raise ApprovalRequired(metadata=state.to_json())
        return _returned(state)

    async def _settle(self, ctx: RunContext[Any]) -> None:
        """Reject the calls that were denied: pydantic-ai answers these itself, and calls no tool."""
        waiting = await self._calls.waiting()
        denied = {_key(ctx, part.tool_call_id): part for part in _denied(ctx)} if waiting else {}
        for key in waiting:
            if key in denied:
                message = str(denied[key].content)
                await self._calls.answer(key, ApprovalAnswer(approved=False, message=message))


def _key(ctx: RunContext[Any], call: str | None) -> str:
    return f"{ctx.conversation_id}:{call}"


def _denied(ctx: RunContext[Any]) -> list[ToolReturnPart]:
    parts = (part for message in ctx.messages if isinstance(message, ModelRequest) for part in message.parts)
    return [part for part in parts if isinstance(part, ToolReturnPart) and part.outcome == "denied"]


def _returned(answer: ModelAnswer) -> ToolReturn[str] | str:
    """The answer as pydantic-ai gives it to the model: the text, and images beside it."""
    images = [
        BinaryContent(base64.b64decode(block["data"]), media_type=block["mimeType"])
        for block in answer.content
        if block.get("type") == "image"
    ]
    return ToolReturn(answer.text, content=images) if images else answer.text
