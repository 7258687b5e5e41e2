"""haft's tools in agents of pydantic-ai."""

import asyncio

import pytest
from journeys import JOURNEYS, run_example, waiting_in_the_inbox_by_option
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from haft import ApprovalAnswer
from haft.adapters.pydantic_ai import HaftToolset


class Driver:
    def __init__(self, service, client, tools_of_agent=None, **options):
        model = OpenAIChatModel("gpt-5.2", provider=OpenAIProvider(openai_client=client))
        toolset = HaftToolset(service, tools=tools_of_agent, **options)
        self._agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])

    async def start(self, prompt):
        return _state(await self._agent.run(prompt))

    def asked(self, state):
        _messages, deferred, _text = state
        return [] if deferred is None else [deferred.metadata[each.tool_call_id] for each in deferred.approvals]

    async def answer(self, state, answers):
        messages, deferred, _text = state
        given = {each.tool_call_id: _given(answer) for each, answer in zip(deferred.approvals, answers, strict=True)}
        results = DeferredToolResults(approvals=given)
        return _state(await self._agent.run(message_history=messages, deferred_tool_results=results))

    def text(self, state):
        return state[2]

    def dump(self, state):
        messages, deferred, text = state
        return ModelMessagesTypeAdapter.dump_json(messages), deferred, text

    async def load(self, stored):
        messages, deferred, text = stored
        return ModelMessagesTypeAdapter.validate_json(messages), deferred, text


def _state(result):
    is_paused = isinstance(result.output, DeferredToolRequests)
    return result.all_messages(), *((result.output, None) if is_paused else (None, result.output))


def _given(answer):
    if not isinstance(answer, ApprovalAnswer):
        return answer
    return ToolApproved() if answer.approved else ToolDenied(answer.message)


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda each: each.__name__)
def test_the_journeys(world, journey):
    asyncio.run(journey(Driver, world))


def test_waiting_in_the_inbox_is_an_option(world):
    asyncio.run(waiting_in_the_inbox_by_option(Driver, world))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_example(world, monkeypatch, capsys):
    run_example("pydantic_ai_agent", "openai-chat:gpt-5.2", world, monkeypatch, capsys)
