"""The private directory of one running program in the state home. It has the socket at which the program's hooks reach
this process, and the private copy of an agent's files. It is removed when the program has ended. If this process is
killed, the next program removes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from typing import Final

from haft.contracts import Mount
from haft.files import HeldLock, locked, remove, try_lock
from haft.service.hook_messages import answer_inside_run, hook_socket_path

LOCK: Final = "lock"
MOST_CONNECTIONS: Final = 16
"""How many connections to the socket are answered at the same time. The program can open as many as it wants, and must
not use up the descriptors and the memory of this process."""
SECONDS_TO_ASK: Final = 10.0
"""How long one connection may take. After that it is closed, because others wait."""
SECONDS_TO_WAIT: Final = 30.0
"""How long to wait for another process that removes what killed processes left."""


def places(home: str) -> str:
    """The directory with the directories of all running programs."""
    return os.path.join(home, "programs")


@contextlib.asynccontextmanager
async def run_place(home: str, run: str) -> AsyncIterator[str]:
    """The directory of one program. Removes those of programs whose process was killed."""
    path, lock = await asyncio.to_thread(_made, places(home), run)
    try:
        yield path
    finally:
        await asyncio.to_thread(remove, path)
        lock.release(unlink=False)


def _made(directory: str, run: str) -> tuple[str, HeldLock]:
    """Remove what killed processes left, and make the directory of a run, with its lock held."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Nobody may take a new directory for an abandoned one before its lock is held.
        with locked(here, SECONDS_TO_WAIT):
            for name in os.listdir(directory):
                with contextlib.suppress(OSError):
                    left = try_lock(os.path.join(directory, name, LOCK))
                    if left is not None:
                        remove(os.path.join(directory, name))
                        left.release(unlink=False)
            path = os.path.join(os.path.realpath(directory), run)
            os.mkdir(path, 0o700)
            return path, HeldLock.create(os.path.join(path, LOCK))
    finally:
        os.close(here)


async def _answer(connection: socket.socket, run: str) -> None:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(answer_inside_run(connection, run), SECONDS_TO_ASK)


@contextlib.asynccontextmanager
async def outer_socket(place: str, home: str, run: str) -> AsyncIterator[Mount]:
    """Listen for the hooks and MCP servers that start inside the program. Yields the mount that shows them the socket,
    at the path where they look for the hook's socket."""
    directory = os.path.join(place, "hook")
    os.mkdir(directory, 0o700)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    answers: set[asyncio.Task[None]] = set()
    free = asyncio.Semaphore(MOST_CONNECTIONS)

    def ended(task: asyncio.Task[None]) -> None:
        answers.discard(task)
        free.release()

    # A path in a socket's address has at most 107 bytes, so the directory is named by a descriptor.
    named = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listening.bind(f"/proc/self/fd/{named}/socket")
        listening.listen(64)
        listening.setblocking(False)

        async def accept() -> None:
            while True:
                await free.acquire()
                connection, _address = await asyncio.get_running_loop().sock_accept(listening)
                task = asyncio.create_task(_answer(connection, run))
                answers.add(task)
                task.add_done_callback(ended)

        accepting = asyncio.create_task(accept())
        try:
            target = os.path.dirname(hook_socket_path(os.path.realpath(home)))
            yield Mount(directory, target, is_writable=False, has_socket=True)
        finally:
            for task in (accepting, *answers):
                task.cancel()
            await asyncio.gather(accepting, *answers, return_exceptions=True)
    finally:
        os.close(named)
        listening.close()
