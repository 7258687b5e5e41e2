"""Requests that wait for a person, and the answers of people."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

from haft.contracts import HaftError, UnknownRequest, is_batch_id
from haft.service import InboxFacade, to_json

if TYPE_CHECKING:
    from haft.service import Waiting
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Nothing
    from haft.surfaces.http.api.types.inbox import (
        Answered,
        ApproveGiven,
        Inbox,
        RejectGiven,
        Request,
        RequestGiven,
    )


async def list_inbox(ask: Ask, _given: Nothing) -> Inbox:
    """What waits for a person in the workspace, the oldest first."""
    return {"requests": [_shown(each) for each in await _waiting(ask) if each.workspace == ask.here.path]}


async def list_all_inboxes(ask: Ask, _given: Nothing) -> Inbox:
    """What waits for a person in all workspaces that this identity may enter, the oldest first."""
    places = {each.path for each in ask.workspaces()}
    return {"requests": [_shown(each) for each in await _waiting(ask) if each.workspace in places]}


async def show_request(ask: Ask, given: RequestGiven) -> Request:
    """One request that waits."""
    return _shown((await _found(ask, given.request))[0])


async def approve(ask: Ask, given: ApproveGiven) -> Answered:
    """Approve a request."""
    await _found(ask, given.request)
    reply = await ask.service.approve(
        given.request,
        scope=given.scope,
        allow=given.allow,
        arguments=given.args,
        grants=given.grants,
        message=given.message,
        who=ask.identity.principal(),
        passphrase=given.passphrase,
        paths=given.paths or (),
        digest=given.digest,
    )
    return _answered(reply)


async def reject(ask: Ask, given: RejectGiven) -> Answered:
    """Reject a request."""
    await _found(ask, given.request)
    reply = await ask.service.reject(
        given.request,
        message=given.message,
        who=ask.identity.principal(),
        passphrase=given.passphrase,
        digest=given.digest,
    )
    return _answered(reply)


def _answered(reply: Any) -> Answered:
    return cast("Answered", {**reply.to_json(), "others": [each.to_json() for each in reply.others]})


async def _waiting(ask: Ask) -> list[Waiting]:
    def read() -> list[Waiting]:
        with contextlib.closing(InboxFacade(ask.server.home)) as inbox:
            return inbox.waiting(None)

    return await asyncio.to_thread(read)


async def _found(ask: Ask, name: str) -> list[Waiting]:
    """The requests that `name` means, all in the workspace of the request. Raises `UnknownRequest` for others."""

    def read() -> list[Waiting]:
        with contextlib.closing(InboxFacade(ask.server.home)) as inbox:
            try:
                return inbox.find_all(name)
            except HaftError:
                # Only who may enter the workspace learns that a request was answered.
                if not is_batch_id(name) and not _is_here(ask, inbox, name):
                    raise UnknownRequest(name) from None
                raise

    found = await asyncio.to_thread(read)
    if any(each.workspace != ask.here.path for each in found):
        raise UnknownRequest(name)
    return found


def _is_here(ask: Ask, inbox: InboxFacade, name: str) -> bool:
    known = inbox.seen(name)
    return known is not None and known.workspace == ask.here.path


def _shown(waiting: Waiting) -> Request:
    return cast("Request", to_json(waiting))
