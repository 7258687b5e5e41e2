"""The sessions of people in browsers, and what webhooks deliver."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from haft.contracts import BadUsage
from haft.service import Sessions, deliveries_of
from haft.surfaces.http.api.problems import HttpError

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Nothing
    from haft.surfaces.http.api.types.people import (
        DeliveriesGiven,
        Delivery,
        DeliveryGiven,
        DeliveryList,
        Session,
        SessionEnded,
        SessionGiven,
        SessionList,
    )


async def list_sessions(ask: Ask, _given: Nothing) -> SessionList:
    """The sessions that are good now, the newest first."""
    return {"sessions": [cast("Session", each.to_json()) for each in Sessions(ask.server.home).all()]}


async def end_session(ask: Ask, given: SessionGiven) -> SessionEnded:
    """End a session. Its open requests end, too."""
    ended = Sessions(ask.server.home).end(given.session)
    if ended is None:
        raise HttpError("not-found", f"there is no session {given.session}")
    return {"ended": cast("Session", ended.to_json())}


async def list_deliveries(ask: Ask, given: DeliveriesGiven) -> DeliveryList:
    """What webhooks delivered, and what they have yet to deliver, the newest first."""
    found = await asyncio.to_thread(deliveries_of(ask.server.home).all)
    shown = [each for each in found if given.state in (None, each.state)][: given.limit]
    return {"deliveries": [cast("Delivery", each.to_json()) for each in shown]}


async def send_again(ask: Ask, given: DeliveryGiven) -> Delivery:
    """Send a message again, whatever became of it."""
    try:
        found = await asyncio.to_thread(deliveries_of(ask.server.home).send_again, given.delivery)
    except BadUsage as error:
        raise HttpError("not-found", error.message) from None
    return cast("Delivery", found.to_json())
