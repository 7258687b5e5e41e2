"""Connections of the server: how many there may be, how long one may take to send its first request, and how much one
may make this process keep whose client reads nothing.

Everyone who reaches the port can connect, also without a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 5000
SECONDS_FOR_HEADERS: Final = 10.0
"""How long a connection may take until the headers of its first request are there."""
SECONDS_WITHOUT_READING: Final = 60.0
"""How long a client may take nothing of what is sent to it."""
MOST_UNSENT: Final = 16_384
"""How many bytes wait in this process until the kernel takes them. More is sent only when it has taken these."""
SEND_BUFFER: Final = 131_072
"""How many bytes wait in the kernel. Without a limit, it keeps megabytes for each client that does not read."""


class Connection(H11Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made_at = time.monotonic()
        self._stalled: asyncio.TimerHandle | None = None
        self._until = self.loop.call_later(SECONDS_FOR_HEADERS, self._end_if_silent)
        transport.set_write_buffer_limits(high=MOST_UNSENT)
        with contextlib.suppress(OSError):
            own: socket.socket = transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._until.cancel()
        self._cancel_stalled()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(SECONDS_WITHOUT_READING, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel_stalled()
        super().resume_writing()

    def _cancel_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _end_if_silent(self) -> None:
        if _is_silent(self):
            self.transport.abort()

    def _make_room(self) -> None:
        """End the oldest connection that has sent no request; if all others have, this one."""
        silent: list[Any] = [each for each in self.connections if _is_silent(each)]
        oldest = min(silent, key=lambda each: each._made_at, default=self)
        oldest.transport.abort()


def _is_silent(connection: Any) -> bool:
    """Whether no request has come on a connection so far."""
    return connection.cycle is None


def allow_many_connections() -> None:
    """Let this process have as many descriptors as the connections need, if the system allows it."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if least < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
