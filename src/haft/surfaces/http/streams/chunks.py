"""Server-sent events as bytes. JSON has no line breaks, so no text of a tool can begin an event of its own."""

from __future__ import annotations

from typing import Any, Final

from haft.surfaces.text.json_text import to_json_text

RETRY_MILLISECONDS: Final = 1000
"""How long a client that lost its stream waits before it comes back."""
OPENING: Final = b"retry: %d\n\n" % RETRY_MILLISECONDS
BEAT: Final = b": beat\n\n"
"""A comment that shows, to both sides, that the connection still works."""
LARGEST_CHUNK: Final = 16_384


def event(kind: str, data: Any) -> bytes:
    """One event, without its id."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), to_json_text(data).encode())


def with_id(name: str, chunk: bytes) -> bytes:
    """An event with its id, from which a client can go on later."""
    return b"id: %b\n%b" % (name.encode(), chunk)


def gap(facts: Any) -> bytes:
    """The reader was too slow, and misses events: the facts say from which number on."""
    return event("gap", facts)


def last(reason: str) -> bytes:
    """The end of a stream that is not the end of what it shows: the client should come back."""
    return b"retry: %d\n%b" % (RETRY_MILLISECONDS * 2, event("end", {"reason": reason}))
