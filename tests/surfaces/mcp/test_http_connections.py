"""Connections that send nothing, or only the beginning of a request, use nothing up."""

import asyncio
import contextlib
import socket

import uvicorn

from haft.surfaces.mcp.over_http import connections as http_connections
from haft.surfaces.mcp.over_http.connections import BoundedConnection

HELLO = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE = 30


async def fine(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"fine"})


def served(body):
    """Run `body(connect)` in a thread while a server answers. `connect()` returns a new connection to it."""

    async def main():
        config = uvicorn.Config(fine, http=BoundedConnection, ws="none", lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def connect():
                return stack.enter_context(socket.create_connection(listening.getsockname(), PATIENCE))

            serving = asyncio.create_task(server._serve([listening]))
            await asyncio.to_thread(body, connect)
            server.should_exit = True
            await serving

    asyncio.run(main())


def is_answered(connection):
    connection.sendall(HELLO + b"\r\n")
    return connection.recv(12) == b"HTTP/1.1 200"


def test_a_connection_without_a_request_is_ended(monkeypatch):
    monkeypatch.setattr(http_connections, "SECONDS_FOR_HEADERS", 0.2)

    def body(connect):
        silent, slow = connect(), connect()
        slow.sendall(HELLO)
        assert is_answered(connect())
        for connection in (silent, slow):
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""

    served(body)


def test_silent_connections_make_room_for_a_client(monkeypatch):
    monkeypatch.setattr(http_connections, "MOST_CONNECTIONS", 5)

    def body(connect):
        first, *_others = [connect() for _ in range(20)]
        assert is_answered(connect())
        with contextlib.suppress(ConnectionResetError):
            assert first.recv(1) == b""

    served(body)
