"""haft's tools in agents of OpenAI's Agents SDK."""

import asyncio

import pytest
from journeys import JOURNEYS, WRITE, run_example, statuses

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, RunState
from haft import ApprovalAnswer
from haft.adapters.openai_agents import HaftTools
from haft.testing.scripted_model import call, say


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


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_example(world, monkeypatch, capsys):
    run_example("openai_agents_agent", "gpt-5.2", world, monkeypatch, capsys)


def test_a_tool_that_is_approved_for_good_in_the_framework_is_not_asked_about_again(world):
    async def main():
        prompt = world.model.task(WRITE, call("write_file", path="b.txt", content="b"), say("ready"))
        async with world.open(Driver) as (service, agent):
            result, _asked = await agent.start(prompt)
            state = result.to_state()
            state.approve(result.interruptions[0], always_approve=True)
            result, asked = await agent._run(state)
            assert (result.final_output, asked) == ("ready", [])
            assert statuses(service, "write_file") == ["done", "done"]

    asyncio.run(main())
