"""A first call, awaited at the top level: for `python -m asyncio` or a notebook. The tests run it as it stands."""
# ruff: noqa: E402, I001
# fmt: off

async def ask_me(request):
    """Whoever can be asked. `add` only reads, so nobody is; here everything else is refused."""
    print(f"{request.tool} wants to run: {request.reason}")
    return False

from haft import ToolService, tool

@tool(readonly=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

async with ToolService.open(workspace=".", tools=[add], approver=ask_me) as service:
    run = service.call("add", {"a": 1, "b": 2})     # a Run: you can await, iterate or cancel it
    async for event in run:                          # the first event is the current state
        print(event.status)
    outcome = await run                              # outcome.run_id, .status, .output, .result, .changes, .error
