"""Connections of the HTTP server: how many there may be, and how long one may take to send its first request.

Everyone on this machine can connect, also without a token. Without limits, connections that send nothing, or one byte
now and then, would use up all descriptors of the process.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 400
SECONDS_FOR_HEADERS: Final = 10.0
"""How long a connection may take until the headers of its first request are there. A request without a valid token is
also the last one of its connection, so later requests are those of known clients."""


class BoundedConnection(H11Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made_at = time.monotonic()
        self._until = self.loop.call_later(SECONDS_FOR_HEADERS, self._end_if_silent)
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._until.cancel()
        super().connection_lost(exc)

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
