"""haft's tools in agents of OpenAI's Agents SDK."""

import asyncio

import pytest
from journeys import JOURNEYS

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, RunState
from haft import ApprovalAnswer
from haft.adapters.openai_agents import HaftTools


class Driver:
    def __init__(self, service, client, tools_of_agent=None, **options):
        self._haft = HaftTools(service, tools=tools_of_agent, **options)
        self._agent = Agent("A", model=OpenAIResponsesModel("gpt-5.2", client), tools=self._haft.tools())

    async def _run(self, given):
        result = await Runner.run(self._agent, given, run_config=RunConfig(tracing_disabled=True))
        asked = [await self._haft.asked(item) for item in result.interruptions]
        return result, asked

    async def start(self, prompt):
        return await self._run(prompt)

    def asked(self, state):
        return state[1]

    async def answer(self, state, answers):
        result, _asked = state
        state = result if isinstance(result, RunState) else result.to_state()
        for item, answer in zip(state.get_interruptions(), answers, strict=True):
            if isinstance(answer, ApprovalAnswer) and not answer.approved:
                state.reject(item, rejection_message=answer.message)
            elif answer:
                state.approve(item)
            else:
                state.reject(item)
        return await self._run(state)

    def text(self, state):
        return state[0].final_output

    def dump(self, state):
        return state[0].to_state().to_string(), state[1]

    async def load(self, stored):
        text, asked = stored
        return await RunState.from_string(self._agent, text), asked


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda each: each.__name__)
def test_the_journeys(world, journey):
    asyncio.run(journey(Driver, world))
