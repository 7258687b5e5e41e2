"""`haft serve mcp` inside `haft run`: a server without tools, which says why. The run already confines and records
everything that the agent does, and the state home is not there.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from haft.service import ask_where, default_home
from haft.version import __version__

WHY: Final = (
    "haft offers no tools here, because this program already runs inside `haft run` (run {}): everything that it does"
    " is confined and recorded, and a person decides about its changes at the end. Use your own tools."
)


def outer_run() -> str | None:
    """The id of the run around this process; None if this process is not inside `haft run`."""
    found = ask_where(default_home(os.environ))
    return found[1] if found is not None and found[0] == "run" else None


def serve_nothing(run: str) -> int:
    """Serve a client on stdin and stdout, without tools, until it closes the connection. Returns the exit code."""

    async def no_tools(_context: Any, _params: Any) -> Any:
        return types.ListToolsResult(tools=[])

    server: Server[Any] = Server("haft", version=__version__, instructions=WHY.format(run), on_list_tools=no_tools)

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Nothing has to be ended.
    os.write(2, f"{WHY.format(run)}\n".encode())
    asyncio.run(serve())
    return 0
