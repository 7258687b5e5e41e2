"""The sessions of people in browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from haft.service import Sessions
from haft.surfaces.http.api.problems import HttpError

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Nothing
    from haft.surfaces.http.api.types.people import Session, SessionEnded, SessionGiven, SessionList


async def list_sessions(ask: Ask, _given: Nothing) -> SessionList:
    """The sessions that are good now, the newest first."""
    return {"sessions": [cast("Session", each.to_json()) for each in Sessions(ask.server.home).all()]}


async def end_session(ask: Ask, given: SessionGiven) -> SessionEnded:
    """End a session. Its open requests end, too."""
    ended = Sessions(ask.server.home).end(given.session)
    if ended is None:
        raise HttpError("not-found", f"there is no session {given.session}")
    return {"ended": cast("Session", ended.to_json())}
