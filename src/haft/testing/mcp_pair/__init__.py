"""An MCP server and an MCP client for tests.

`ScriptedMcpServer` is a server whose answers are data: for tools that call MCP servers, and for scenarios that repeat
recorded calls. `connected_client` starts a server and is its client: for people who test a server of their own.
"""

from typing import TYPE_CHECKING

from haft.lazy import face

if TYPE_CHECKING:
    from haft.testing.mcp_pair.client import McpClient, connected_client
    from haft.testing.mcp_pair.scripted_server import McpAnswer, ScriptedMcpServer
else:
    __getattr__ = face(
        __name__, {"client": "McpClient connected_client", "scripted_server": "McpAnswer ScriptedMcpServer"}
    )

__all__ = ["McpAnswer", "McpClient", "ScriptedMcpServer", "connected_client"]
