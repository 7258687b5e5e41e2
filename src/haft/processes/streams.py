"""Pipes between a child and the event loop, read without threads, whatever the child does.

The loop reads each pipe once per iteration, so that a flood of output from one call does not block the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable

READ_BYTES = 1 << 18
PIPE_BYTES = 1 << 20
F_SETPIPE_SZ = 1031


def pipe(size: int | None = None) -> tuple[int, int]:
    """A pipe for a child's output: its read end does not block. Its buffer has `size` bytes, or is large if the system
    allows that."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    resize(writing, size or PIPE_BYTES)
    return reading, writing


def resize(descriptor: int, size: int) -> None:
    """Change the size of a pipe's buffer, if the system allows that."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, F_SETPIPE_SZ, size)


def pass_on(descriptor: int, feed: Feed, loop: asyncio.AbstractEventLoop) -> None:
    """Let a child read everything that can be read from a descriptor of the host. A thread reads it, because files and
    some devices cannot be polled; the thread waits until the child has taken what was read before."""

    async def send(data: bytes) -> None:
        await feed.send(data)

    def read() -> None:
        with contextlib.suppress(OSError, RuntimeError):  # The loop may be closed by now.
            while data := os.read(descriptor, READ_BYTES):
                asyncio.run_coroutine_threadsafe(send(data), loop).result()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(feed.finish)

    threading.Thread(target=read, name="haft-input", daemon=True).start()


class Drain:
    """Reads a pipe to its end and passes the data on."""

    def __init__(
        self,
        descriptor: int,
        receive: Callable[[bytes], None],
        loop: asyncio.AbstractEventLoop,
        until_writable: Callable[[], Awaitable[None] | None] | None = None,
    ) -> None:
        """`until_writable`: see `Command.until_writable`."""
        self._until_writable = until_writable
        self._pause: asyncio.Future[None] | None = None
        self.descriptor = descriptor
        self.finished: asyncio.Future[None] = loop.create_future()
        self.failure: BaseException | None = None
        self.last_read = loop.time()
        self._receive = receive
        self._loop = loop
        loop.add_reader(descriptor, self._read)

    def read_waiting(self) -> None:
        """Read at once what the pipe holds, even if it holds as much as it can."""
        for _ in range(PIPE_BYTES // READ_BYTES):
            if self.finished.done() or self._read() < READ_BYTES:
                return

    def _read(self) -> int:
        """Read once, and return how many bytes came."""
        try:
            data = os.read(self.descriptor, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
            return 0
        self.last_read = self._loop.time()
        if self.failure is None:
            try:
                self._receive(data)
            except Exception as error:
                # The receiver failed; go on reading, or the child would hang when it writes.
                self.failure = error
        if self._pause is None and self._until_writable is not None and (until := self._until_writable()) is not None:
            self._loop.remove_reader(self.descriptor)
            self._pause = asyncio.ensure_future(until)
            self._pause.add_done_callback(self._resume)
        return len(data)

    @property
    def is_paused(self) -> bool:
        """Whether nothing is read, because whoever takes the output is not ready."""
        return self._pause is not None

    def _resume(self, _pause: asyncio.Future[None]) -> None:
        self._pause = None
        self.last_read = self._loop.time()
        if not self.finished.done():
            self._loop.add_reader(self.descriptor, self._read)

    def close(self) -> None:
        """Stop reading."""
        if not self.finished.done():
            self._loop.remove_reader(self.descriptor)
            os.close(self.descriptor)
            self.finished.set_result(None)
            if self._pause is not None:
                self._pause.cancel()


class Feed:
    """Writes a child's input and closes it, or keeps it open for more. It is no error if the child does not read."""

    def __init__(
        self, descriptor: int, data: bytes, loop: asyncio.AbstractEventLoop, *, keeps_open: bool = False
    ) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._waiting: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._loop = loop
        self._open = True
        self._keeps_open = keeps_open
        if data or not keeps_open:
            self.send(data)

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Send more input, if the input was kept open. The future is done when the data is written, or when the child
        reads no more; then the data is dropped."""
        taken: asyncio.Future[None] = self._loop.create_future()
        if not self._open:
            taken.set_result(None)
            return taken
        self._waiting.append((memoryview(data), taken))
        if len(self._waiting) == 1:
            self._write()
            if self._waiting:
                self._loop.add_writer(self._descriptor, self._go_on)
        return taken

    def finish(self) -> None:
        """Close the input when all data is written."""
        self._keeps_open = False
        if not self._waiting:
            self.close()

    def _go_on(self) -> None:
        self._write()
        if self._open and not self._waiting:
            self._loop.remove_writer(self._descriptor)

    def _write(self) -> None:
        rest, taken = self._waiting[0]
        try:
            rest = rest[os.write(self._descriptor, rest[:READ_BYTES]) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.close()
            return
        if rest:
            self._waiting[0] = rest, taken
            return
        self._waiting.popleft()
        _complete(taken)
        if not self._waiting and not self._keeps_open:
            self.close()

    def close(self) -> None:
        """Close the input: the child sees the end of its input."""
        if self._open:
            self._open = False
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            while self._waiting:
                _complete(self._waiting.popleft()[1])


def _complete(taken: asyncio.Future[None]) -> None:
    if not taken.done():  # The task that waited may have been cancelled.
        taken.set_result(None)
