"""The streams of an agent's shell: a command reads from the shell's stdin, and writes to its stdout and stderr.

The output is copied by a thread, because the streams are shared with the agent: haft must not make them non-blocking. A
stream that nobody reads then blocks only this thread. The input is a descriptor that the command gets as it is, or a
pipe into which a second thread copies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import queue
import select
import stat
import threading
from typing import Final

from haft.contracts import Stream

PIECE: Final = 4096
"""A pipe that is ready takes so many bytes without blocking (PIPE_BUF)."""
CHECK_MILLISECONDS: Final = 250
MOST_WAITING: Final = 1 << 22
"""How many bytes may wait to be written before the command has to wait."""
READ_BYTES: Final = 1 << 16


class AgentOutput:
    """Writes the output of a command to the stdout and stderr of an agent's shell, in order."""

    def __init__(self, stdout: int, stderr: int) -> None:
        """Duplicates the descriptors: the caller may close its own."""
        self._descriptors: dict[Stream, int | None] = {"stdout": os.dup(stdout), "stderr": os.dup(stderr)}
        self._waiting: queue.SimpleQueue[tuple[Stream, bytes] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._written: asyncio.Future[None] = self._loop.create_future()
        self._stopped = False
        self._size = 0
        """How many bytes wait to be written."""
        self._lock = threading.Lock()
        self._room: asyncio.Future[None] | None = None
        """Set when few bytes wait, if somebody waits for that."""
        self._thread = threading.Thread(target=self._write_all, name="agent-output", daemon=True)
        self._thread.start()

    def write(self, stream: Stream, data: bytes) -> None:
        """Write these bytes soon."""
        with self._lock:
            self._size += len(data)
        self._waiting.put((stream, data))

    def until_writable(self) -> asyncio.Future[None] | None:
        """A future that is done when few bytes wait to be written; None if that is so now."""
        with self._lock:
            if self._size < MOST_WAITING or self._stopped:
                return None
            if self._room is None:
                self._room = self._loop.create_future()
            return self._room

    def _wrote(self, size: int) -> None:
        with self._lock:
            self._size -= size
            if self._room is None or self._size >= MOST_WAITING // 4:
                return
            room, self._room = self._room, None
        with contextlib.suppress(RuntimeError):  # The loop was closed meanwhile.
            self._loop.call_soon_threadsafe(_tell, room)

    async def end(self) -> None:
        """Wait until everything is written, or nobody reads any more."""
        self._waiting.put(None)
        await asyncio.shield(self._written)

    def stop(self) -> None:
        """Drop what is not written yet."""
        self._stopped = True
        self._waiting.put(None)

    def _write_all(self) -> None:
        while (piece := self._waiting.get()) is not None and not self._stopped:
            stream, data = piece
            descriptor = self._descriptors[stream]
            if descriptor is not None and not self._write(descriptor, data):
                os.close(descriptor)
                self._descriptors[stream] = None
            self._wrote(len(data))
        self._wrote(self._size)
        for descriptor in self._descriptors.values():
            if descriptor is not None:
                os.close(descriptor)
        with contextlib.suppress(RuntimeError):  # The loop was closed meanwhile.
            self._loop.call_soon_threadsafe(_tell, self._written)

    def _write(self, descriptor: int, data: bytes) -> bool:
        """Write these bytes. Returns False if nobody reads the stream any more."""
        rest = memoryview(data)
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        try:
            while rest:
                if not is_file:
                    while not ready.poll(CHECK_MILLISECONDS):
                        if self._stopped:
                            return False
                rest = rest[os.write(descriptor, rest if is_file else rest[:PIECE]) :]
        except BlockingIOError:
            return self._write(descriptor, bytes(rest))  # The agent itself made the stream non-blocking.
        except OSError:
            return False
        return True


def _tell(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def are_same(one: int, other: int) -> bool:
    """Whether two descriptors lead to the same file, pipe, socket or terminal."""
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev)


class AgentInput:
    """The stdin of an agent's shell, as a command of haft gets it."""

    def __init__(self, stdin: int) -> None:
        """Duplicates the descriptor: the caller may close its own."""
        self._stopped = False
        self._thread: threading.Thread | None = None
        self.descriptor = self._taken(stdin)
        """What the command gets as its stdin."""

    def _taken(self, stdin: int) -> int:
        kind = os.fstat(stdin).st_mode
        if stat.S_ISFIFO(kind) and fcntl.fcntl(stdin, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            return os.dup(stdin)
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISREG(kind)):
            # A terminal belongs to the agent: a command that had it could type into it. A file is copied, because a
            # command that had its descriptor could open it again to write.
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        reading, writing = os.pipe()
        self._thread = threading.Thread(
            target=self._copy, args=(os.dup(stdin), writing), name="agent-input", daemon=True
        )
        self._thread.start()
        return reading

    def _copy(self, stdin: int, writing: int) -> None:
        ready = select.poll()
        ready.register(stdin, select.POLLIN)
        ready.register(writing, select.POLLERR)
        try:
            while not self._stopped:
                found = dict(ready.poll(CHECK_MILLISECONDS))
                if writing in found:
                    return  # The command reads no more.
                if stdin in found:
                    data = os.read(stdin, READ_BYTES)
                    if not data:
                        return
                    while data:
                        data = data[os.write(writing, data) :]
        except OSError:
            return
        finally:
            os.close(stdin)
            os.close(writing)

    def close(self) -> None:
        """Stop to copy, and close the descriptor. Closing twice does nothing."""
        if not self._stopped:
            self._stopped = True
            os.close(self.descriptor)
