"""The event loop of the egress process: calls a function when a socket is ready, and runs blocking work in threads."""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import select
import socket
import threading
from collections.abc import Callable

Handler = Callable[[socket.socket, int], None]
WORKERS = 32
"""As many as the look-ups of eight calls, so that slow look-ups of one call do not delay others."""
STACK_BYTES = 1 << 19


class Loop:
    """Waits for all sockets of the process."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, tuple[socket.socket, Handler]] = {}
        self._jobs: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        self._closing: queue.SimpleQueue[list[socket.socket]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.EPOLLIN)
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2

    def begin(self) -> None:
        """Start the threads, after the process has confined itself."""
        threading.stack_size(STACK_BYTES)
        for _ in range(WORKERS):
            threading.Thread(target=self._work, daemon=True).start()
        threading.Thread(target=self._close, daemon=True).start()

    def add(self, end: socket.socket, mask: int, handler: Handler) -> None:
        self._handlers[end.fileno()] = end, handler
        self._poll.register(end.fileno(), mask)

    def change(self, end: socket.socket, mask: int) -> None:
        self._poll.modify(end.fileno(), mask)

    def remove(self, end: socket.socket) -> None:
        if self._handlers.pop(end.fileno(), None) is not None:
            self._poll.unregister(end.fileno())

    def run_in_thread(self, job: Callable[[], Callable[[], None]]) -> None:
        """Run `job` in a thread, and then call on the loop what it returns."""
        self._jobs.put(job)

    def close_later(self, ends: list[socket.socket]) -> None:
        """Close sockets in a thread: the kernel takes some milliseconds to close a packet socket."""
        self._closing.put(ends)

    def _close(self) -> None:
        while True:
            for end in self._closing.get():
                end.close()

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            with contextlib.suppress(Exception):
                self._done.put(job())
                os.eventfd_write(self._wake, 1)

    @property
    def is_crowded(self) -> bool:
        """Whether most descriptors of this process are in use."""
        return len(self._handlers) > self._most

    def _run_done(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                done = self._done.get_nowait()
                with contextlib.suppress(Exception):
                    done()

    def step(self, seconds: float | None, failed: Callable[[Handler], None]) -> None:
        """Wait for events, at most `seconds`, and handle them. `failed` is called with a handler that raised."""
        ready = [(each, self._handlers.get(each), events) for each, events in self._poll.poll(seconds, 256)]
        for descriptor, found, events in ready:
            if descriptor == self._wake:
                os.eventfd_read(self._wake)
                self._run_done()
                continue
            # An earlier handler may have closed the socket, and opened another one with the same number.
            if found is None or self._handlers.get(descriptor) is not found:
                continue
            end, handler = found
            try:
                handler(end, events)
            except Exception:  # The input of one call must not end the network of others.
                failed(handler)
