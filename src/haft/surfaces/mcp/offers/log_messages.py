"""Log messages to clients: what a tool says about its progress, and, from level `debug` on, its output as it comes.

A client of 2026-07-28 says with each request which messages it wants. An older client says so once, with
`logging/setLevel`; until then it gets none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
_STATE: Final = "haft log level"
_LONGEST: Final = 10_000
_MODERN: Final = "2026-07-28"


def level_of(context: ServerRequestContext[Any, Any]) -> str | None:
    """The lowest level of the messages that the client wants; None if it wants none."""
    if context.protocol_version >= _MODERN:
        level: Any = (context.meta or {}).get(LEVEL_KEY)
    else:
        level = connection_of(context).state.get(_STATE)
    return level if level in LEVELS else None


def set_level(context: ServerRequestContext[Any, Any], level: str) -> None:
    """Remember the level that an older client set for its connection."""
    connection_of(context).state[_STATE] = level


def connection_of(context: ServerRequestContext[Any, Any]) -> Any:
    """The connection on which a request came."""
    return context.session._connection


def is_wanted(level: str, lowest: str) -> bool:
    """Whether a client that wants messages from `lowest` on wants one of this level."""
    return LEVELS.index(level) >= LEVELS.index(lowest)


async def send_log(context: ServerRequestContext[Any, Any], level: Any, text: str, logger: str) -> None:
    """Send one message, on the stream of its request."""
    params = types.LoggingMessageNotificationParams(level=level, data=text[:_LONGEST], logger=logger)
    await context.session.send_notification(types.LoggingMessageNotification(params=params), context.request_id)
