"""An MCP client for tests: it lists and calls the tools of a server that it starts, as an agent does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from haft.testing.mcp_pair.scripted_server import McpAnswer


class McpClient:
    """A client that is connected to a server. Use `connected_client`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The definitions of the server's tools by their names."""
        listed = await self._client.list_tools()
        found = (each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in listed.tools)
        return {each["name"]: each for each in found}

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> McpAnswer:
        """Call a tool, and return its answer, which a `ScriptedMcpServer` can give again."""
        result = await self._client.call_tool(tool, dict(arguments or {}))
        plain = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        blocks = plain.get("content", [])
        texts = [each["text"] for each in blocks if each["type"] == "text"]
        return McpAnswer(
            tool,
            dict(arguments or {}),
            "\n".join(texts),
            plain.get("structuredContent"),
            bool(plain.get("isError")),
            tuple(each for each in blocks if each["type"] != "text"),
        )


@contextlib.asynccontextmanager
async def connected_client(
    command: Sequence[str], *, cwd: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
) -> AsyncIterator[McpClient]:
    """A client of the server that this command starts, such as `["haft", "serve", "mcp"]`. The server ends with the
    `with` block. The server runs without a sandbox, unless it is haft itself."""
    parameters = StdioServerParameters(
        command=command[0],
        args=list(command[1:]),
        cwd=None if cwd is None else os.fspath(cwd),
        env=None if env is None else dict(env),
    )
    async with Client(stdio_client(parameters)) as client:
        yield McpClient(client)
