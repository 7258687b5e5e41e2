"""The answers of the `mcp` package to the first request of a client: `first_answer` gives them at the next start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, modern_on_request
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION


class _NoClient:
    """The context of a request that no client made: nothing can be sent to anyone."""

    transport = TransportContext(kind="none", can_send_request=False)
    can_send_request = False
    request_id = 0
    message_metadata = None
    cancel_requested: Any = None

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        raise NotImplementedError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None: ...

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None: ...


async def own_answers(server: Server[Any], init_options: Any) -> dict[str, Any]:
    """What the server answers to `server/discover`, and to `initialize` in its newest version; and the versions that
    `initialize` knows, the newest last."""
    nobody: Any = _NoClient()
    envelope = {types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION, types.CLIENT_CAPABILITIES_META_KEY: {}}
    discover = await modern_on_request(server, {})(nobody, "server/discover", {"_meta": envelope})
    runner = ServerRunner(server, Connection.for_loop(nobody), {}, init_options=init_options)
    hello = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "haft", "version": "0"},
    }
    initialize = await runner.on_request(nobody, "initialize", hello)
    return {"discover": discover, "initialize": initialize, "handshakes": list(HANDSHAKE_PROTOCOL_VERSIONS)}
