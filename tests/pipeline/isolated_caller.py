"""A tool with a layer of its own, which calls another tool. It is a module, because its process imports it."""

from haft import Context, tool


@tool(isolated=True)
async def outer(context: Context) -> str:
    """Call the tool `both`."""
    return (await context.call("both", {})).output
