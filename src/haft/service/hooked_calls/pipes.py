"""Named pipes for one ticket, for agents whose own sandbox forbids sockets.

Codex runs its shell in a sandbox in which no program may connect to a socket, but named pipes can be opened. So a
ticket for such an agent has a directory with two of them: over `request` comes the message that otherwise comes over
the socket of the resident (see `hook_messages`), and over `answer` go the output and the end of the command. The other
end is `surfaces/hook/start_pipes.py`. Pipes carry no descriptors, so the command gets no input.

If the process at the other end dies, `request` ends, and the command is cancelled. If this process dies, `answer` ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Awaitable, Callable
from typing import Final

from haft.service.hook_messages import BadHookMessage, HookKind, HookMessage, HookMessageReader, encode_hook_message
from haft.storage import StateHome

READ_BYTES: Final = 1 << 16
OUTPUT: Final = {1: b"1", 2: b"2"}
"""The kind of the messages with output, by the number of the stream."""

Redeem = Callable[[HookMessage, int, int, int], Awaitable[tuple[bytes, bytes, bytes]]]
"""Runs the command of a message with these descriptors as stdin, stdout and stderr, and returns the fields of the
answer."""


def pipes_of(home: StateHome, ticket: str) -> str:
    """The directory of a ticket's pipes."""
    return os.path.join(home.path, "hook", "pipes", ticket)


def remove_pipes(home: StateHome, is_over: Callable[[str], bool]) -> None:
    """Remove the pipes of the tickets of which `is_over` is true. Whoever has them open can still use them."""
    with contextlib.suppress(FileNotFoundError):
        for ticket in os.listdir(pipes_of(home, "")):
            if is_over(ticket):
                shutil.rmtree(pipes_of(home, ticket), ignore_errors=True)


class TicketPipes:
    """The pipes of one ticket. They are open from the beginning, so that the other end finds somebody."""

    def __init__(self, home: StateHome, ticket: str, redeem: Redeem, signal: Callable[[int], None]) -> None:
        self._place = pipes_of(home, ticket)
        self._redeem = redeem
        self._signal = signal
        os.makedirs(self._place, mode=0o700)
        for name in ("request", "answer"):
            os.mkfifo(os.path.join(self._place, name), 0o600)
        self._request = os.open(os.path.join(self._place, "request"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Opened for both, so that the other end waits for an answer instead of finding the pipe at its end.
        self._answer = os.open(os.path.join(self._place, "answer"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._loop = asyncio.get_running_loop()
        self._reader = HookMessageReader()
        self._task: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self._is_closed = False
        self._loop.add_reader(self._request, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._request, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            self._reader.feed(data)
            while data and (message := self._reader.next()) is not None:
                self._take(message)
        except BadHookMessage:
            data = b""
        if not data:  # The other end has died, or has read its answer and ended.
            self._loop.remove_reader(self._request)
            if self._task is None:
                self.close()
            else:
                self._task.cancel()

    def _take(self, message: HookMessage) -> None:
        if message.kind == HookKind.SIGNAL and message.fields:
            with contextlib.suppress(ValueError):
                self._signal(int(message.fields[0]))
        elif message.kind == HookKind.SHELL and self._task is None:
            self._task = asyncio.ensure_future(self._run(message))

    async def _run(self, message: HookMessage) -> None:
        try:
            nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            streams = {number: os.pipe() for number in OUTPUT}
            copying = [asyncio.ensure_future(self._copy(number, read)) for number, (read, _) in streams.items()]
            try:
                answer = await self._redeem(message, nothing, streams[1][1], streams[2][1])
            except BaseException:
                for each in copying:
                    each.cancel()
                raise
            finally:
                for descriptor in (nothing, streams[1][1], streams[2][1]):
                    os.close(descriptor)
            await asyncio.gather(*copying)
            await self._send(encode_hook_message(HookKind.ANSWER, *answer))
        finally:
            self.close()

    async def _copy(self, number: int, descriptor: int) -> None:
        """Send what comes over a pipe, until it ends."""
        os.set_blocking(descriptor, False)
        try:
            while True:
                await self._ready(descriptor, self._loop.add_reader, self._loop.remove_reader)
                with contextlib.suppress(BlockingIOError):
                    data = os.read(descriptor, READ_BYTES)
                    if not data:
                        return
                    await self._send(encode_hook_message(OUTPUT[number], data))
        finally:
            os.close(descriptor)

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            rest = memoryview(data)
            while rest:
                try:
                    rest = rest[os.write(self._answer, rest) :]
                except BlockingIOError:
                    await self._ready(self._answer, self._loop.add_writer, self._loop.remove_writer)

    @staticmethod
    async def _ready(descriptor: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        add(descriptor, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            remove(descriptor)

    def close(self) -> None:
        """Close and remove the pipes. The other end, if it still reads, finds the answer at its end."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._request)
        os.close(self._request)
        os.close(self._answer)
        shutil.rmtree(self._place, ignore_errors=True)
