"""haft's tools in agents of LangGraph."""

import asyncio

import pytest
from journeys import JOURNEYS, run_example
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from haft.adapters.langchain import answers, haft_tools


class Driver:
    def __init__(self, service, client, tools_of_agent=None, **options):
        tools = haft_tools(service, tools=tools_of_agent, **options)
        model = ChatOpenAI(
            model="gpt-5.2",
            async_client=client.chat.completions,
            client=client.chat.completions,
            root_async_client=client,
            root_client=client,
        ).bind_tools(tools)

        async def ask(state):
            return {"messages": [await model.ainvoke(state["messages"])]}

        self._graph = StateGraph(MessagesState).add_node("model", ask).add_node("tools", ToolNode(tools))
        self._graph.add_edge("tools", "model").set_entry_point("model")
        self._graph.add_conditional_edges("model", tools_condition)
        self._saver = InMemorySaver()

    async def _run(self, given):
        agent = self._graph.compile(checkpointer=self._saver)
        return await agent.ainvoke(given, {"configurable": {"thread_id": "T-1"}})

    async def start(self, prompt):
        return await self._run({"messages": [("user", prompt)]})

    def asked(self, state):
        return [each.value for each in state.get("__interrupt__", ())]

    async def answer(self, state, given):
        return await self._run(Command(resume=answers(state["__interrupt__"], given)))

    def text(self, state):
        return state["messages"][-1].content

    def dump(self, state):
        return state, self._saver

    async def load(self, stored):
        state, self._saver = stored
        return state


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda each: each.__name__)
def test_the_journeys(world, journey):
    asyncio.run(journey(Driver, world))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_example(world, monkeypatch, capsys):
    run_example("langgraph_agent", "gpt-5.2", world, monkeypatch, capsys)
