"""The newest messages of one session over HTTP, for a client that lost its connection and comes back.

Only clients of the version 2025-11-25 come back in this way. Each session has a store of its own, because the names of
streams are the numbers of requests, which all sessions use. The store is in memory, and bounded: the oldest messages go
first.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from mcp.server.streamable_http import EventMessage, EventStore

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.streamable_http import EventCallback
    from mcp_types import JSONRPCMessage

MOST_EVENTS: Final = 200
MOST_BYTES: Final = 8_000_000
MOST_SESSIONS_OF_ONE: Final = 100
"""How many sessions one client can have open."""
RETRY_MILLISECONDS: Final = 1000
"""How long a client that lost its connection waits before it comes back."""


class KeptEvents(EventStore):
    """The messages of one session."""

    def __init__(self) -> None:
        self._events: deque[tuple[str, str, JSONRPCMessage | None, int]] = deque()
        self._bytes = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message; None stands for the beginning of a stream. The id cannot be guessed."""
        event = secrets.token_urlsafe(16)
        size = 0 if message is None else len(message.model_dump_json())
        self._events.append((event, stream_id, message, size))
        self._bytes += size
        while len(self._events) > MOST_EVENTS or (self._bytes > MOST_BYTES and len(self._events) > 1):
            self._bytes -= self._events.popleft()[3]
        return event

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send the messages of a stream that came after this event. Returns the stream; None if the event is not
        kept any more."""
        kept = list(self._events)
        found = next((number for number, each in enumerate(kept) if each[0] == last_event_id), None)
        if found is None:
            return None
        stream = kept[found][1]
        for event, of, message, _size in kept[found + 1 :]:
            if of == stream and message is not None:
                await send_callback(EventMessage(message, event))
        return stream


def keep_events(server: Server[Any]) -> None:
    """Give each new session of a server a store of its own, and let no client open all sessions. The package would use
    one store for all sessions, and count them together."""
    manager = server.session_manager
    admit = manager._admit_session

    def admit_with_store(requestor: Any) -> Any:
        own = sum(owner == requestor for owner in manager._session_owners.values())
        if own >= MOST_SESSIONS_OF_ONE:
            return None
        manager.event_store = KeptEvents()
        return admit(requestor)

    vars(manager)["_admit_session"] = admit_with_store
