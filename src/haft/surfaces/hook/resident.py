"""The resident: one process for each state home, which answers `start.py`.

It starts when the first hook needs it, keeps one service open for each workspace in which agents work, and ends when
nobody has needed it for a while. The socket's directory is open to its user only. `hook_calls` answers hooks,
`shell_calls` runs the commands of rewritten lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from haft import version
from haft.service import BadHookMessage, HookConnection, HookKind, HookMessage, hook_socket_path

IDLE_SECONDS: Final = 900.0
"""After how many seconds without a connection and without open work the resident ends."""
MESSAGE_SECONDS: Final = 60.0
"""After how many seconds a connection without a whole message is closed. `start.py` sends its message at once."""
ALIVE_SECONDS: Final = 5.0
"""How often a waiting `start.py` gets a sign of life."""
TAKE_OVER_SECONDS: Final = 20.0
"""How long a new resident waits for one that is about to end."""
WAITING: Final = 0.02
BACKLOG: Final = 128

Handler = Callable[[HookConnection, HookMessage], Awaitable[None]]


class Resident:
    """Accepts connections, and passes each message to the handler of its kind."""

    def __init__(
        self, home: str, *, idle_seconds: float = IDLE_SECONDS, message_seconds: float = MESSAGE_SECONDS
    ) -> None:
        self._message_seconds = message_seconds
        self._path = hook_socket_path(home)
        self._handlers: dict[bytes, Handler] = {HookKind.WHERE: self._say_where}
        self._is_busy: Callable[[], bool] = lambda: False
        self._idle_seconds = idle_seconds
        self._connected: set[asyncio.Task[None]] = set()
        self._last_use = time.monotonic()
        self._stop = asyncio.Event()
        self._installation = installation()
        self._is_outdated = False
        """Whether haft was installed anew since this process started: the next hook starts a new resident."""
        self._lock: int | None = None

    def take(self) -> socket.socket | None:
        """Become the resident of this state home, and listen; None if another process is."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(os.path.dirname(self._path), "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + TAKE_OVER_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if _listens(self._path) or time.monotonic() > until:
                    os.close(lock)
                    return None
                time.sleep(WAITING)  # The other one is about to end, or has not begun to listen.
        self._lock = lock
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            _bind(listening, self._path)
        finally:
            os.umask(mask)
        listening.listen(BACKLOG)
        listening.setblocking(False)
        return listening

    async def serve(
        self,
        listening: socket.socket,
        handlers: Mapping[bytes, Handler],
        *,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """Answer until nobody needs the resident any more, or it gets SIGTERM. `is_busy` says whether work goes on
        although nobody is connected."""
        self._handlers.update(handlers)
        self._is_busy = is_busy
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        accepting = asyncio.create_task(self._accept(listening))
        try:
            await self._until_idle()
        finally:
            accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await accepting
            self._leave(listening)
        # A hook that connected at the last moment still gets its answer.
        while self._connected and (self._is_outdated or not self._stop.is_set()):
            await asyncio.wait(self._connected)

    async def _until_idle(self) -> None:
        while not self._stop.is_set():
            if self._connected or self._is_busy():
                self._last_use = time.monotonic()
            rest = self._last_use + self._idle_seconds - time.monotonic()
            if rest <= 0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(rest, self._idle_seconds / 4)):
                    await self._stop.wait()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _address = await loop.sock_accept(listening)
            except OSError:  # Too many connections are open: others wait until one ends.
                await asyncio.sleep(WAITING)
                continue
            self._begin(sock)
            if installation() != self._installation:
                self._is_outdated = True
                self._stop.set()

    def _begin(self, sock: socket.socket) -> None:
        task = asyncio.create_task(self._answer(HookConnection(sock)))
        self._connected.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connected.discard(task)
        self._last_use = time.monotonic()
        if not task.cancelled():
            task.exception()

    def _leave(self, listening: socket.socket) -> None:
        """Stop listening. From now on another process can become the resident."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        with contextlib.suppress(BlockingIOError):
            while True:
                self._begin(listening.accept()[0])
        listening.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _answer(self, connection: HookConnection) -> None:
        try:
            _ = connection.peer
            async with asyncio.timeout(self._message_seconds):
                message = await connection.receive()
            if message is None:
                return
            handler = self._handlers.get(message.kind)
            if handler is None:
                message.close()
                return
            await handler(connection, message)
        except (BadHookMessage, OSError):  # A `TimeoutError` is an `OSError`.
            return  # The other end is gone, or is no `start.py`: it denies if it waits for an answer.
        finally:
            connection.close()

    async def _say_where(self, connection: HookConnection, _message: HookMessage) -> None:
        await connection.send(HookKind.ANSWER, b"resident", b"")


@contextlib.asynccontextmanager
async def signs_of_life(connection: HookConnection) -> AsyncIterator[None]:
    """While this is entered, the other end gets a sign of life every few seconds."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            await connection.send(HookKind.ALIVE)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await telling


def installation() -> tuple[int, ...] | None:
    """A value that changes when another version of haft is installed in the same place."""
    try:
        found = os.stat(version.__file__)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _bind(listening: socket.socket, path: str) -> None:
    """Bind the socket. Paths of sockets are short, so it is bound relative to its directory."""
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{directory}/{os.path.basename(path)}" if len(path) > 100 else path)
    finally:
        os.close(directory)


def _listens(path: str) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(1)
        probe.connect(path)
    except OSError:
        return False
    finally:
        probe.close()
    return True
