"""The server and its machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from haft.contracts import iso_time
from haft.service import ACTIONS, AuditLogFacade, StoreFacade, Tokens, bounds_of, diagnose, load_config

if TYPE_CHECKING:
    from haft.service import ClientToken
    from haft.surfaces.http.api.ask import Ask
    from haft.surfaces.http.api.types.given import Nothing
    from haft.surfaces.http.api.types.machine import (
        AuditGiven,
        AuditPage,
        Checks,
        ExportGiven,
        Me,
        NewToken,
        Revoked,
        StoreAnswer,
        Token,
        TokenGiven,
        TokenList,
        TokenNamed,
        Verdict,
        VerifyGiven,
        Workspaces,
    )

_AT_ONCE: Final = 500
MOST_LOOKED_AT: Final = 100_000
"""How many entries of the audit log one page looks at, at most."""


async def who_am_i(ask: Ask, _given: Nothing) -> Me:
    """The identity of the request, and what it may do."""
    shape = {**ask.identity.to_json(), "actions": [action for action in ACTIONS if ask.identity.may(action)]}
    return cast("Me", shape)


async def list_workspaces(ask: Ask, _given: Nothing) -> Workspaces:
    """The workspaces that this identity may enter."""
    return {"workspaces": [{"name": each.name, "path": each.path} for each in ask.workspaces()]}


async def list_audit(ask: Ask, given: AuditGiven) -> AuditPage:
    """Entries of the audit log, the newest first, as far as they are of workspaces that this identity may enter."""
    places = _places(ask)

    def read() -> AuditPage:
        found: list[dict[str, Any]] = []
        last = None
        for entry in islice(AuditLogFacade(ask.server.home).newest(), MOST_LOOKED_AT):
            last = entry["seq"]
            if given.cursor is not None and (last is None or last >= given.cursor):
                continue
            if _fits(entry, given) and _is_of(entry, places):
                found.append(entry)
                if len(found) == given.limit:
                    break
        is_end = last is None or last <= 1
        return {"entries": found, "next": None if is_end else last}

    return await asyncio.to_thread(read)


def _fits(entry: dict[str, Any], given: ExportGiven) -> bool:
    wanted = {"type": given.type, "run": given.run, "who": given.who, "tool": given.tool}
    if any(value is not None and entry.get(name) != value for name, value in wanted.items()):
        return False
    return given.text is None or given.text.lower() in orjson.dumps(entry).decode().lower()


def _places(ask: Ask) -> frozenset[str] | None:
    """The workspaces whose entries the request is about; None for all of this state home."""
    if ask.workspace is not None:
        return frozenset({ask.workspace.path})
    entered = ask.workspaces()
    is_all = not ask.identity.workspaces and len(entered) == len(list(ask.server.workspaces))
    return None if is_all else frozenset(each.path for each in entered)


def _is_of(entry: dict[str, Any], places: frozenset[Any] | None) -> bool:
    return places is None or entry.get("workspace") in places


async def verify_audit(ask: Ask, given: VerifyGiven) -> Verdict:
    """Check whether the audit log is as haft wrote it."""
    log = AuditLogFacade(ask.server.home)
    verdict = await asyncio.to_thread(log.verify, since_checkpoint=given.since_checkpoint)
    return cast("Verdict", verdict.to_json())


async def export_audit(ask: Ask, given: ExportGiven) -> AsyncIterator[bytes]:
    """The entries of the audit log as JSON lines, the oldest first."""
    places = _places(ask)
    entries = AuditLogFacade(ask.server.home).entries()

    async def lines() -> AsyncIterator[bytes]:
        while some := await asyncio.to_thread(lambda: list(islice(entries, _AT_ONCE))):
            chosen = [orjson.dumps(each) + b"\n" for each in some if _fits(each, given) and _is_of(each, places)]
            yield b"".join(chosen)

    return lines()


async def examine(ask: Ask, _given: Nothing) -> Checks:
    """What this machine can do, and what is broken."""
    workspace = None if ask.workspace is None else ask.workspace.path
    found = await asyncio.to_thread(lambda: [*diagnose(ask.server.home, workspace, os.environ)])
    return cast("Checks", {"checks": [check.to_json() for check in found]})


async def show_store(ask: Ask, _given: Nothing) -> StoreAnswer:
    """The disk space that outputs and earlier contents of files use."""
    places = _places(ask)

    def read() -> StoreAnswer:
        store = StoreFacade(ask.server.home, bounds_of(load_config(None, os.environ), os.environ))
        try:
            usage = store.measure().to_json()
            if places is not None:
                for name in ("workspaces", "held"):
                    usage[name] = [each for each in usage[name] if each["workspace"] in places]
            return {"usage": usage}
        finally:
            store.close()

    return await asyncio.to_thread(read)


async def list_tokens(ask: Ask, _given: Nothing) -> TokenList:
    """The tokens, without what is secret of them."""
    tokens = Tokens(ask.server.home)
    return {"tokens": [_token(tokens, each) for each in tokens.all()]}


async def make_token(ask: Ask, given: TokenGiven) -> NewToken:
    """Make a token."""
    tokens = Tokens(ask.server.home)
    stored, text = tokens.add(
        given.name,
        ask.identity.principal(),
        kind=given.kind,
        roles=given.roles,
        workspaces=given.workspaces,
        tools=given.tools,
        seconds=given.seconds,
    )
    return {"token": text, "stored": _token(tokens, stored)}


async def revoke_token(ask: Ask, given: TokenNamed) -> Revoked:
    """Revoke a token. Its open requests end."""
    return {"revoked": Tokens(ask.server.home).revoke(given.name, ask.identity.principal()).name}


def _token(tokens: Tokens, token: ClientToken) -> Token:
    used = tokens.last_used(token)
    return cast("Token", {**token.to_json(), "lastUsedAt": None if used is None else iso_time(used)})
