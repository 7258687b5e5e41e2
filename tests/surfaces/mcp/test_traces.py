"""The trace of an MCP client goes on in the calls that it makes."""

import asyncio

from haft import tool
from otlp_collector import collecting

CALLERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(readonly=True)
def subtract(a: int, b: int) -> int:
    """Subtract."""
    return a - b


def test_a_call_continues_the_trace_that_its_request_names(served, era, monkeypatch):
    monkeypatch.setenv("TRACEPARENT", CALLERS.replace("4", "5"))  # Of the server, not of its clients.

    async def main(collector):
        settings = {"telemetry.endpoint": collector.endpoint}
        async with served(era, tools=[add, subtract], settings=settings) as (client, _service):
            assert not (await client.call_tool("add", {"a": 1, "b": 2}, meta={"traceparent": CALLERS})).is_error
            assert not (await client.call_tool("subtract", {"a": 1, "b": 2})).is_error

    with collecting() as collector:
        asyncio.run(main(collector))
        span = collector.named("execute_tool add")
        assert (span.trace, span.parent) == tuple(CALLERS.split("-")[1:3])
        assert collector.named("execute_tool subtract").parent == ""
