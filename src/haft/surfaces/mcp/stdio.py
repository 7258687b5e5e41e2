"""`haft serve mcp` over stdin and stdout: one JSON message a line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, aclose_shielded, modern_on_request
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage

from haft.surfaces.mcp.opening import opened
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.server import HaftServer

AT_ONCE: Final = 4096
"""How much is written at once: a pipe that is ready takes this much without blocking."""
LONGEST_LINE: Final = 64_000_000


class Incoming:
    """The messages that the client sends, as the `mcp` package reads them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._rest = bytearray()
        self._waiting: deque[SessionMessage | Exception] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self.ended = asyncio.Event()
        """Set when the client has closed stdin."""

    def start(self) -> None:
        """Begin to read."""
        self._loop.add_reader(self._descriptor, self._ready)

    def _ready(self) -> None:
        data = os.read(self._descriptor, 1 << 18)
        if not data:
            self.end()
            return
        self.feed(data)

    def feed(self, data: bytes) -> None:
        """Take bytes that the client sent."""
        self._rest += data
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            if line.strip():
                self._waiting.append(message_of(line))
        if lines:
            self._news.set()

    def end(self) -> None:
        """Note that nothing more comes."""
        self._loop.remove_reader(self._descriptor)
        self._ended = True
        self.ended.set()
        self._news.set()

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            import anyio

            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def message_of(line: bytes) -> SessionMessage | Exception:
    """The message in a line; an exception if the line is no message."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


class Outgoing:
    """The messages to the client, as the `mcp` package writes them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_gone = False

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self.write(text.encode() + b"\n")

    def write(self, line: bytes) -> None:
        """Write a line, as much of it as fits now."""
        if self._is_gone:
            return
        was_empty = not self._buffer
        self._buffer += line
        if was_empty:
            self._push()
            if self._buffer:
                self._loop.add_writer(self._descriptor, self._go_on)

    def _push(self) -> None:
        try:
            while self._buffer and self._poll.poll(0):
                written = os.write(self._descriptor, self._buffer[:AT_ONCE])
                del self._buffer[:written]
        except OSError:  # The client has closed its end.
            self._is_gone = True
            self._buffer.clear()

    def _go_on(self) -> None:
        self._push()
        if not self._buffer:
            self._loop.remove_writer(self._descriptor)

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


async def serve_stream(served: HaftServer, incoming: Any, outgoing: Any) -> None:
    """Serve both eras of the protocol on one pair of streams, until the client closes its end. Each request is of the
    era that it is written in: some clients begin with one and fall back to the other on the same pipe."""
    server = served.server
    dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(incoming, outgoing, inline_methods=frozenset({"initialize"}))
    connection = Connection.for_loop(dispatcher)
    runner = ServerRunner(server, connection, {}, init_options=served.init_options())
    modern = modern_on_request(server, {})

    async def on_request(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if method == "initialize" or not _is_modern(params):
            return await runner.on_request(context, method, params)
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(code=route.code, message=route.message, data=route.data)
        return await modern(context, method, params)

    try:
        await dispatcher.run(on_request, runner.on_notify)
    finally:
        await aclose_shielded(connection)


def _is_modern(params: Mapping[str, Any] | None) -> bool:
    meta = None if params is None else params.get("_meta")
    return isinstance(meta, Mapping) and types.PROTOCOL_VERSION_META_KEY in meta


def serve(options: ServeOptions) -> int:
    """Serve stdin and stdout until the client closes stdin, or a signal comes."""
    stdin, stdout = claim_streams()
    asyncio.run(_serve(options, stdin, stdout))
    return 0


def claim_streams() -> tuple[int, int]:
    """Keep stdin and stdout for the protocol. Other code that reads stdin finds nothing, and other output goes to
    stderr."""
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return stdin, stdout


async def _serve(options: ServeOptions, stdin: int, stdout: int) -> None:
    stop = asyncio.Event()
    incoming, outgoing = Incoming(stdin), Outgoing(stdout)
    incoming.start()
    async with opened(options, stop) as served:
        serving = asyncio.create_task(serve_stream(served, incoming, outgoing))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
