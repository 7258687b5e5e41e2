"""An agent of OpenAI's Agents SDK with haft's tools. A person approves its calls, and its last change is undone."""

import asyncio
import sys

from agents import Agent, Runner
from haft import ToolService
from haft.adapters.openai_agents import HaftTools


def approve(asked: dict) -> bool:
    """Your dialogue with the person stands here."""
    print(f"approve? {asked['tool']} {asked['arguments']}")
    return True


async def main(model: str, prompt: str) -> None:
    async with ToolService.open(workspace=".") as service:
        haft = HaftTools(service)
        agent = Agent("Writer", model=model, tools=haft.tools())
        result = await Runner.run(agent, prompt)
        while result.interruptions:  # The run has paused. It could go on tomorrow.
            state = result.to_state()
            for item in result.interruptions:
                wanted = approve(await haft.asked(item))
                state.approve(item) if wanted else state.reject(item)
            result = await Runner.run(agent, state)
        print(result.final_output)
        undone = await service.undo()
        print("undone:", [step["path"] for step in undone.result["plan"]])


if __name__ == "__main__":  # python openai_agents_agent.py MODEL PROMPT
    asyncio.run(main(*sys.argv[1:]))
