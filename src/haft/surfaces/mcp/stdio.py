"""`haft serve mcp` over stdin and stdout: one JSON message a line, for one client.

The streams are haft's own: the package's would hand each message from a thread to a task and to another task.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, Final, Self

import anyio
import mcp_types as types
import orjson
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, aclose_shielded, modern_on_request
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage

from haft.service import announce_caller
from haft.surfaces.mcp.first_answer import Begun, FirstAnswers, Id, begin, id_of, key_of, load_kept, save_kept
from haft.surfaces.mcp.offers.own_answers import own_answers
from haft.surfaces.mcp.opening import EndLimit, opened
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.server import HaftServer

AT_ONCE: Final = 4096
"""How much is written at once: a pipe that is ready takes this much without blocking."""
READ_AT_ONCE: Final = 1 << 18
LONGEST_LINE: Final = 64_000_000
"""The longest message. A longer one is dropped: nobody can be asked to keep it in memory."""
MOST_MESSAGES: Final = 2000
"""While this many messages wait to be handled, haft reads no more."""
MOST_UNREAD: Final = 32_000_000
"""While the client has not read this many bytes of answers, haft reads no more requests. Otherwise a client that never
reads would fill the memory."""
SECONDS_OF_PAUSE: Final = 0.05
INVALID_REQUEST: Final = -32600


class Closing:
    """What the package asks of every stream, and these streams do not need."""

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Incoming(Closing):
    """The messages that the client sends, as the `mcp` package reads them."""

    def __init__(self, descriptor: int, outgoing: Outgoing | None = None) -> None:
        """`outgoing`: where the answers go. Requests that are not as they should be are answered there at once."""
        self._descriptor = descriptor
        self._outgoing = outgoing
        self._loop = asyncio.get_running_loop()
        self._rest: list[bytes] = []
        """The pieces of the current line. They are put together once, at the end of the line."""
        self._length = 0
        self._drops = False
        """Whether the current line is too long, and is dropped."""
        self._waiting: deque[SessionMessage | Exception] = deque()
        self._news = asyncio.Event()
        self._has_ended = False

    def start(self) -> None:
        """Begin to read."""
        try:
            self._loop.add_reader(self._descriptor, self._read)
        except OSError:  # The event loop cannot watch a file.
            threading.Thread(target=self._read_file, name="stdin", daemon=True).start()

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, READ_AT_ONCE)
        except OSError:
            data = b""
        if data:
            self.feed(data)
            if self._is_full():
                self._loop.remove_reader(self._descriptor)
                self._loop.call_later(SECONDS_OF_PAUSE, self._after_pause)
        else:
            self._loop.remove_reader(self._descriptor)
            self.end()

    def _is_full(self) -> bool:
        unread = 0 if self._outgoing is None else self._outgoing.unread
        return len(self._waiting) > MOST_MESSAGES or unread > MOST_UNREAD

    def _after_pause(self) -> None:
        """Read on if there is room. A client that is gone needs no more answers, whatever it sent before."""
        if _is_hung_up(self._descriptor) or (self._outgoing is not None and self._outgoing.is_gone):
            self._waiting.clear()
            self.end()
        elif self._is_full():
            self._loop.call_later(SECONDS_OF_PAUSE, self._after_pause)
        else:
            self._loop.add_reader(self._descriptor, self._read)

    def _read_file(self) -> None:
        while data := os.read(self._descriptor, READ_AT_ONCE):
            self._loop.call_soon_threadsafe(self.feed, data)
        self._loop.call_soon_threadsafe(self.end)

    def feed(self, data: bytes) -> None:
        """Take bytes that the client sent."""
        first, *others = data.split(b"\n")
        if not others:
            self._keep(first)
            return
        self._keep(first)
        lines = [b"".join(self._rest), *others[:-1]]
        self._rest, self._length, self._drops = [], 0, False
        self._keep(others[-1])
        for line in lines:
            if line and not line.isspace():
                self._take(line)
        self._news.set()

    def _take(self, line: bytes) -> None:
        message = message_of(line)
        request = id_in(line) if isinstance(message, Exception) else None
        if request is None or self._outgoing is None:
            self._waiting.append(message)
            return
        told = {"code": INVALID_REQUEST, "message": "this is not a request as MCP writes it"}
        self._outgoing.write(json.dumps({"jsonrpc": "2.0", "id": request, "error": told}).encode() + b"\n")

    def _keep(self, piece: bytes) -> None:
        """Remember the beginning of a line."""
        if self._drops:
            return
        self._rest.append(piece)
        self._length += len(piece)
        if self._length > LONGEST_LINE:
            self._rest, self._length, self._drops = [], 0, True

    def end(self) -> None:
        """Note that nothing more comes."""
        self._has_ended = True
        self._news.set()

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._waiting:
            if self._has_ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


def message_of(line: bytes) -> SessionMessage | Exception:
    """The message in a line; an exception if the line is no message."""
    try:
        message = json.loads(line)  # orjson would round large integers, and refuse texts that are no UTF-16.
        if type(message) is dict and message.get("jsonrpc") == "2.0" and type(message.get("method")) is str:
            params = message.get("params")
            if type(message.get("id")) in (int, str) and (params is None or type(params) is dict):
                return SessionMessage(types.JSONRPCRequest.model_construct(**message))
        return SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False))
    except (ValueError, TypeError, RecursionError) as error:
        return ValueError(str(error))


def id_in(line: bytes) -> str | int | None:
    """The id of a request that is otherwise no message of MCP; None if the line is no request."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or "method" not in message:
        return None
    given = message.get("id")
    return given if type(given) in (int, str) else None


def _is_hung_up(descriptor: int) -> bool:
    """Whether the client has closed its end, even if not everything that it sent has been read."""
    poll = select.poll()
    poll.register(descriptor, select.POLLHUP | select.POLLRDHUP)
    return bool(poll.poll(0))


class Outgoing(Closing):
    """The messages to the client, as the `mcp` package writes them. Answers to requests that `first_answer` has
    answered are left out."""

    def __init__(self, descriptor: int, answered: Collection[Id] = ()) -> None:
        self._descriptor = descriptor
        self._answered = set(answered)
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self.is_gone = False
        """Whether the client has closed its end."""

    @property
    def unread(self) -> int:
        """How many bytes wait for the client to read."""
        return len(self._buffer)

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message."""
        message = item.message
        if (
            isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
            and self._answered
            and message.id is not None
        ):
            mark = id_of(message.id)
            if mark in self._answered:
                self._answered.discard(mark)
                return
        self.write(line_of(message))

    def write(self, line: bytes) -> None:
        """Write a line, as much of it as fits now. The rest follows when the client reads."""
        if self.is_gone:
            return
        was_empty = not self._buffer
        self._buffer += line
        if was_empty and not self._push():
            self._loop.add_writer(self._descriptor, self._go_on)

    def _push(self) -> bool:
        """Write as much as the client takes. Returns whether that is everything."""
        try:
            while self._buffer and self._poll.poll(0):
                written = os.write(self._descriptor, self._buffer[:AT_ONCE])
                del self._buffer[:written]
        except OSError:  # The client has closed its end.
            self.is_gone = True
            self._buffer.clear()
        return not self._buffer

    def _go_on(self) -> None:
        if self._push():
            self._loop.remove_writer(self._descriptor)


def line_of(message: types.JSONRPCMessage) -> bytes:
    """A message as one line of JSON."""
    if isinstance(message, types.JSONRPCResponse):
        form = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
        with contextlib.suppress(TypeError):
            return orjson.dumps(form, option=orjson.OPT_APPEND_NEWLINE)
    else:
        form = message.model_dump(by_alias=True, exclude_unset=True, mode="python")
    # Very large integers, and texts that are no UTF-16: `json` writes both.
    return json.dumps(form).encode() + b"\n"


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


def serve(options: ServeOptions, first: FirstAnswers | None = None) -> int:
    """Serve stdin and stdout until the client closes stdin, or a signal comes. `first` has read and answered so
    far."""
    words = sys.argv[1:]
    begun = (begin(words) if first is None else first).hand_over()
    with EndLimit() as limit:
        asyncio.run(_serve(options, begun, words, limit))
    return 0


async def _serve(options: ServeOptions, begun: Begun, words: list[str], limit: EndLimit) -> None:
    stop = asyncio.Event()
    outgoing = Outgoing(begun.stdout, begun.answered)
    incoming = Incoming(begun.stdin, outgoing)
    incoming.feed(begun.data)
    incoming.start()
    async with opened(options, stop, limit) as served:
        client = announce_caller(served.service.home, begun.stdin)
        serving = asyncio.create_task(serve_stream(served, incoming, outgoing))
        stopping = asyncio.create_task(stop.wait())
        await keep_answers(served, words)
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        if client is not None:
            client.release()


async def keep_answers(served: HaftServer, words: list[str]) -> None:
    """Keep the first answers for the next start with the same words, unless they are kept already."""
    home, key = served.service.home.path, key_of(words)
    answers = await own_answers(served.server, served.init_options())
    if load_kept(home, key) != {"key": orjson.loads(orjson.dumps(key)), **answers}:
        save_kept(home, key, answers)
