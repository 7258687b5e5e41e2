"""haft's tools as tools of LangChain, for agents of LangGraph.

    tools = haft_tools(service)
    state = await agent.ainvoke({"messages": […]}, config)
    if "__interrupt__" in state:  # Calls need approval: the value of each interrupt says what a person must see.
        state = await agent.ainvoke(Command(resume=approve(*state["__interrupt__"])), config)

A call that needs approval interrupts the graph. Its run in haft stays paused until the graph is resumed, which may be
in another process. LangGraph then executes the tool call again from its beginning, which finds the same run.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any, Final

from langchain_core.tools import BaseTool
from langgraph.types import Interrupt, interrupt

from haft.adapters.tool_calls import PausedCall, ToolCalls
from haft.contracts import ApprovalAnswer, BadUsage, ModelAnswer

if TYPE_CHECKING:
    from haft.service import ToolService

_CALL: Final[contextvars.ContextVar[tuple[dict[str, Any], str]]] = contextvars.ContextVar("haft-tool-call")
"""The arguments and the key of the call that is executed. They do not pass through the parameters of a function, where
an argument of the tool could have the name of one of LangChain's own."""


def haft_tools(service: ToolService, **options: Any) -> list[BaseTool]:
    """The tools of a service that can be called now. The options are those of `ToolCalls`."""
    calls = ToolCalls(service, "langchain:", **options)
    return [_made(calls, name, description, schema) for name, description, schema in calls.tools()]


def approve(*interrupts: Interrupt, **more: Any) -> dict[str, Any]:
    """What `Command(resume=…)` gets to approve calls. `more` are fields of `ApprovalAnswer`, such as `scope`."""
    return _resume(interrupts, {"approved": True, **more})


def reject(*interrupts: Interrupt, message: str | None = None) -> dict[str, Any]:
    """What `Command(resume=…)` gets to reject calls. The model reads the message."""
    return _resume(interrupts, {"approved": False, "message": message})


def _resume(interrupts: tuple[Interrupt, ...], answer: dict[str, Any]) -> dict[str, Any]:
    # An answer names its request: LangGraph gives a call that interrupts twice its first answer again.
    return {each.id: {"request": each.value["request"], **answer} for each in interrupts}


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
            given = interrupt(state.to_json())  # The graph stops here, unless it was resumed with an answer.
            if not isinstance(given, dict) or "request" not in given:
                raise BadUsage(f"`{given!r}` answers no call", hint="resume with `approve(interrupt)` or `reject(…)`")
            request, answer = given["request"], {name: each for name, each in given.items() if name != "request"}
            if request == state.request:
                await self.calls.answer(key, ApprovalAnswer(**answer), request)
                state = await self.calls.call(self.name, arguments, key)
        return _content(state)

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
