"""haft's tools as tools of LangChain, for agents of LangGraph.

    tools = haft_tools(service)
    state = await agent.ainvoke({"messages": […]}, config)
    while interrupts := state.get("__interrupt__"):  # The value of each says what a person must see.
        command = Command(resume=answers(interrupts, [… for each in interrupts]))
        state = await agent.ainvoke(command, config)

A call that needs approval interrupts the graph. Its run in haft stays paused until the graph is resumed, which may be
in another process. LangGraph then executes the tool call again from its beginning, which finds the same run.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from langchain_core.tools import BaseTool
from langgraph.types import Interrupt, interrupt

from haft.adapters.tool_calls import PausedCall, ToolCalls
from haft.contracts import ApprovalAnswer, BadUsage, ModelAnswer

if TYPE_CHECKING:
    from haft.service import ToolService

_FIELDS: Final = ("approved", "message", "arguments", "scope", "allow")
"""The fields of an answer that a checkpoint of LangGraph can keep."""
_CALL: Final[contextvars.ContextVar[tuple[dict[str, Any], str]]] = contextvars.ContextVar("haft-tool-call")
"""The arguments and the key of the call that is executed. They do not pass through the parameters of a function, where
an argument of the tool could have the name of one of LangChain's own."""


def haft_tools(service: ToolService, **options: Any) -> list[BaseTool]:
    """The tools of a service that can be called now. The options are those of `ToolCalls`."""
    calls = ToolCalls(service, "langchain:", **options)
    return [_made(calls, name, description, schema) for name, description, schema in calls.tools()]


def answers(interrupts: Sequence[Interrupt], given: Iterable[bool | ApprovalAnswer]) -> dict[str, Any]:
    """What `Command(resume=…)` gets to answer interrupts, one answer for each."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each, one in zip(interrupts, given, strict=True):
        answer = one if isinstance(one, ApprovalAnswer) else ApprovalAnswer(approved=one)
        facts = {name: value for name in _FIELDS if (value := getattr(answer, name)) is not None}
        # Several calls in one node have one interrupt id. So an answer names its request.
        found.setdefault(each.id, []).append({"request": each.value["request"], **facts})
    return dict(found)


class HaftTool(BaseTool):
    """One of haft's tools."""

    calls: Any
    args_schema: Any

    async def arun(self, tool_input: str | dict[str, Any], *given: Any, **options: Any) -> Any:
        configurable = (options.get("config") or {}).get("configurable", {})
        thread, place = configurable.get("thread_id"), configurable.get("checkpoint_ns")
        key = f"{thread}:{place}:{options.get('tool_call_id')}" if place else ""
        token = _CALL.set((tool_input if isinstance(tool_input, dict) else {}, key))
        try:
            return await super().arun({}, *given, **options)
        finally:
            _CALL.reset(token)

    async def _arun(self, *_arguments: Any, **_more: Any) -> str | list[dict[str, Any]]:
        arguments, key = _CALL.get()
        # Only a graph can be interrupted. Elsewhere the approver of the service or its inbox answers.
        state = await self.calls.call(self.name, arguments, key, pauses=bool(key))
        while isinstance(state, PausedCall):
            async with self.calls.turn:  # The answer to another call of the same node may have been for this one, too.
                if self.calls.asks(key, state.request):
                    # The graph stops here, unless it was resumed. It gets its earlier answers again, in their order.
                    await self._use(interrupt(state.to_json()))
            state = await self.calls.call(self.name, arguments, key)
        return _content(state)

    async def _use(self, given: Any) -> None:
        if not isinstance(given, list):
            raise BadUsage(f"`{given!r}` answers no call", hint="resume with `answers(interrupts, [True, …])`")
        for each in given:
            answer = ApprovalAnswer(**{name: value for name, value in each.items() if name in _FIELDS})
            await self.calls.answer_request(each["request"], answer)

    def _run(self, *_arguments: Any, **_options: Any) -> Any:
        raise BadUsage("haft's tools are asynchronous", hint="use `ainvoke` or `astream`")


def _made(calls: ToolCalls, name: str, description: str, schema: dict[str, Any]) -> BaseTool:
    return HaftTool(name=name, description=description, args_schema=schema, calls=calls)


def _content(answer: ModelAnswer) -> str | list[dict[str, Any]]:
    """The answer as the content of a tool message: the text, and images beside it."""
    images = [
        {"type": "image", "base64": block["data"], "mime_type": block["mimeType"]}
        for block in answer.content
        if block.get("type") == "image"
    ]
    return [{"type": "text", "text": answer.text}, *images] if images else answer.text
