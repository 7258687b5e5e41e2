"""An agent of pydantic-ai with haft's tools. A person approves its calls, and its last change is undone at the end."""

import asyncio
import sys

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults

from haft import ToolService
from haft.adapters.pydantic_ai import HaftToolset


def approve(asked: dict) -> bool:
    """Your dialogue with the person stands here."""
    print(f"approve? {asked['tool']} {asked['arguments']}")
    return True


async def main(model: str, prompt: str) -> None:
    async with ToolService.open(workspace=".") as service:
        agent = Agent(model, toolsets=[HaftToolset(service)], output_type=[str, DeferredToolRequests])
        result = await agent.run(prompt)
        while isinstance(result.output, DeferredToolRequests):  # The run has paused. It could go on tomorrow.
            asked = result.output.metadata
            answers = {call.tool_call_id: approve(asked[call.tool_call_id]) for call in result.output.approvals}
            results = DeferredToolResults(approvals=answers, metadata=asked)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
        print(result.output)
        undone = await service.undo()
        print("undone:", [step["path"] for step in undone.result["plan"]])


if __name__ == "__main__":  # python pydantic_ai_agent.py openai-chat:MODEL PROMPT
    asyncio.run(main(*sys.argv[1:]))
