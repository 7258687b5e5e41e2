"""haft's tools in the frameworks of agents: pydantic-ai, LangChain and LangGraph, and OpenAI's Agents SDK.

Each module is for one framework, and imports it. haft itself imports none of them. What the modules share is in
`tool_calls`.
"""
