"""Carries the messages of an MCP connection over the stdin and stdout of a session process.

The process may be hostile. Lines that are no messages go to the log. Too many messages, too large messages and too much
other output end the connection with a reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter

from haft.contracts import EndedChild, HaftError, Session, Stream
from haft.sources.mcp.server_log import ServerLog

LARGEST_MESSAGE: Final = 32_000_000
MOST_WAITING: Final = 20_000
"""The most messages that wait to be read."""
MOST_WAITING_BYTES: Final = 100_000_000
MOST_GARBAGE: Final = 20_000_000
"""The most bytes on stdout between two messages that are no message."""
FLOOD_BYTES: Final = 200_000_000
FLOOD_SECONDS: Final = 20.0
"""A process that writes `FLOOD_BYTES` within this time is ended."""
MOST_REQUESTS: Final = 100
"""The most requests of a server that wait for an answer."""
LONGEST_GARBAGE: Final = 2_000
"""The most characters of a line on stdout that the log keeps."""
UNREADABLE: Final = -32_700
_REQUEST_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,15})')
Streams = tuple[Any, Any]


class ServerStreams:
    """The output of a server's process, as the streams that the client of the `mcp` package reads and writes."""

    def __init__(self, log: ServerLog) -> None:
        self._log = log
        self._messages, self._incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        self._line = bytearray()
        self._skipping = False
        self._garbage = 0
        self._waiting_bytes = 0
        self._counted = 0
        self._counted_since = 0.0
        self._requests = 0
        """How many requests of the server wait for an answer."""
        self.heard = 0
        """How many messages came."""
        self.trouble: str | None = None
        """What the process did wrong, so that the connection was closed; None if it did nothing wrong."""
        self.broken = asyncio.Event()
        """Set with `trouble`."""

    def output(self, stream: Stream, data: bytes) -> None:
        if self.trouble is not None:
            return
        self._count(stream, len(data))
        if stream == "stderr":
            self._log.add(data)
            return
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._add(part)
            self._end_line()
        self._add(rest)

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        for child in children:
            self._log.add(f"[haft] ended with the server: {child.pid} {child.command}\n".encode("utf-8", "replace"))

    def _count(self, stream: Stream, size: int) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._counted_since > FLOOD_SECONDS:
            self._counted_since, self._counted = now, 0
        self._counted += size
        if self._counted > FLOOD_BYTES:
            self._fail(f"it floods its {stream}")

    def _add(self, part: bytes) -> None:
        if self._skipping:
            return
        self._line += part
        if len(self._line) > LARGEST_MESSAGE:
            self._skipping = True
            self._refuse(bytes(self._line[:4_096]), f"it sent a message larger than {LARGEST_MESSAGE:_} bytes")
            self._line.clear()

    def _end_line(self) -> None:
        if self._skipping:
            self._skipping = False
            return
        text = bytes(self._line).strip()
        self._line.clear()
        if not text or self.trouble is not None:
            return
        try:
            message = SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        except (ValueError, RecursionError):
            if text.startswith(b"{") and b'"jsonrpc"' in text:
                self._refuse(text[:4_096], "it sent a message that cannot be read")
            self._note_garbage(text)
            return
        self._garbage = 0
        self.heard += 1
        if isinstance(message.message, JSONRPCRequest):
            self._requests += 1
            if self._requests > MOST_REQUESTS:
                self._fail("it sends requests, and reads no answers")
                return
        self._pass_on(message, len(text))

    def _note_garbage(self, text: bytes) -> None:
        self._garbage += len(text)
        self._log.add(b"[stdout] " + text[:LONGEST_GARBAGE] + b"\n")
        if self._garbage > MOST_GARBAGE:
            self._fail("it floods its stdout with text that is no message")

    def _refuse(self, head: bytes, why: str) -> None:
        """Let the request fail whose answer cannot be read, if the answer names a request."""
        if (found := _REQUEST_ID.search(head)) is not None and b'"method"' not in head[:200]:
            error = ErrorData(code=UNREADABLE, message=why)
            self._pass_on(SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)), len(head))

    def _pass_on(self, message: SessionMessage, size: int) -> None:
        waiting = self._incoming.statistics().current_buffer_used
        self._waiting_bytes = size if waiting == 0 else self._waiting_bytes + size
        if waiting >= MOST_WAITING or self._waiting_bytes > MOST_WAITING_BYTES:
            self._fail("it sends messages faster than haft can read them")
            return
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._messages.send_nowait(message)

    def _fail(self, why: str) -> None:
        self.trouble = why
        self.close()
        self.broken.set()

    def close(self) -> None:
        """No more messages come: requests that wait for an answer fail."""
        self._messages.close()

    def dispose(self) -> None:
        """Close the streams. Nobody reads them any more."""
        self._messages.close()
        self._incoming.close()

    @contextlib.asynccontextmanager
    async def opened(self, session: Session) -> AsyncIterator[Streams]:
        """The two streams that the client of the `mcp` package expects, for a process that runs."""
        outgoing, written = anyio.create_memory_object_stream[SessionMessage](1_000)

        async def write() -> None:
            async for each in written:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await session.send(text.encode() + b"\n")
                if isinstance(each.message, JSONRPCResponse | JSONRPCError):
                    self._requests -= 1

        async def close_at_end() -> None:
            with contextlib.suppress(HaftError, OSError):
                await session.wait()
            self.close()

        tasks = [asyncio.create_task(write()), asyncio.create_task(close_at_end())]
        try:
            yield self._incoming, outgoing
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            outgoing.close()
            written.close()
            self.dispose()
