"""An agent of LangGraph with haft's tools. A person approves its calls, and its last change is undone at the end."""

import asyncio
import sys

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from haft import ToolService
from haft.adapters.langchain import answers, haft_tools


def approve(asked: dict) -> bool:  # Your dialogue with the person stands here.
    print(f"approve? {asked['tool']} {asked['arguments']}")
    return True


async def main(name: str, prompt: str) -> None:
    async with ToolService.open(workspace=".") as service:
        model = ChatOpenAI(model=name).bind_tools(tools := haft_tools(service))
        graph = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge("tools", "model")
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.set_entry_point("model").add_conditional_edges("model", tools_condition)
        agent, config = graph.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "T-1"}}
        state = await agent.ainvoke({"messages": [("user", prompt)]}, config)
        while interrupts := state.get("__interrupt__"):  # The graph has paused. It could go on tomorrow.
            command = Command(resume=answers(interrupts, [approve(each.value) for each in interrupts]))
            state = await agent.ainvoke(command, config)
        print(state["messages"][-1].content)
        undone = await service.undo()
        print("undone:", [step["path"] for step in undone.result["plan"]])


if __name__ == "__main__":  # python langgraph_agent.py MODEL PROMPT
    asyncio.run(main(*sys.argv[1:]))
