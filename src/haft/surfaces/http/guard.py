"""The guard before every route. It refuses what web pages of others send, finds out who asks, and gives every answer
the headers that tell browsers what they may not do with it.

In this order it checks

1. `Host`: a name under which this server is reached. Without this check, a page could reach the server under a domain
   name of its own (DNS rebinding).
2. `Origin` and `Sec-Fetch-Site`: only pages of this very server. A page on another port of this machine counts as
   foreign: browsers send it the strict cookies, and its simple requests have no `Origin`. haft never answers with CORS
   headers. There are two exceptions. The callback of OIDC is guarded by its state. And a person may follow a link from
   elsewhere to a page: then an empty page loads the same address again from itself.
3. the identity, from `Authorization` or the cookie. The rule of the route says whether it needs one.

What it does not check: the rights of the identity, which the rule of each route does (`rules`), and the operations.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from haft.contracts import Trace, in_trace, parse_traceparent
from haft.surfaces.http.api.problems import HttpError, problem
from haft.surfaces.http.asgi import IDENTITY, ROUTE, TRACE, App, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from haft.service import CountedRequest, Identity
    from haft.surfaces.http.server import Server

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SECURITY: Final = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cache-control", b"no-store"),
)
_HSTS: Final = (b"strict-transport-security", b"max-age=31536000")
_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SAME_SITE: Final = frozenset({b"same-origin", b"none"})
_SECONDS_BETWEEN_LOOKS: Final = 0.5
_AGAIN: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>haft</title>'
)
"""A page that loads its own address again. It has no script, and nothing of the address is in it."""


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: App, server: Server, *, from_elsewhere: Iterable[str] = ()) -> None:
        """`from_elsewhere` are the paths that are answered even if a page of another site led there."""
        self._app = app
        self._server = server
        self._from_elsewhere = frozenset(from_elsewhere)
        self._open: dict[asyncio.Task[Any], Identity] = {}
        self._counts: Counter[str] = Counter()
        """How many requests of each identity are open, by its key."""
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # Refused before it is accepted: HTTP status 403.
            return
        trace = callers_trace(scope) or Trace(secrets.token_hex(16), "")
        scope[TRACE] = trace.trace_id
        scope[IDENTITY] = None
        with in_trace(trace), self._server.requests.counting(scope["method"], lambda: _route(scope)) as request:
            await self._answer(scope, receive, self._with_headers(request, send))

    def _with_headers(self, request: CountedRequest, send: Send) -> Send:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                given = {bytes(name).lower() for name, _ in message.get("headers", ())}
                added = [pair for pair in self._headers() if pair[0] not in given]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        return with_headers

    def _headers(self) -> Iterable[tuple[bytes, bytes]]:
        return (*_SECURITY, _HSTS) if self._server.has_tls else _SECURITY

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        refused = foreign(headers, self._server.names)
        is_link = refused is not None and refused.is_other_site and scope["method"] == "GET" and _is_top_level(headers)
        if refused is not None and not (is_link and scope["path"] in self._from_elsewhere):
            answer = Response(_AGAIN, media_type="text/html") if is_link else problem(refused, scope[TRACE])
            await answer(scope, receive, send)
            return
        identity = await self._server.authenticator.identity_of(scope)
        scope[IDENTITY] = identity
        if identity is None:
            await self._app(scope, receive, send)
            return
        if self._counts[identity.key] >= self._server.limits.open_requests:
            most = self._server.limits.open_requests
            crowd = HttpError("too-many-requests", f"{identity.name} has {most} open requests", retryable=True)
            crowd.headers["retry-after"] = "1"
            await problem(crowd, scope[TRACE])(scope, receive, send)
            return
        await self._pass_on(identity, scope, receive, send)

    async def _pass_on(self, identity: Identity, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application in a task of its own, which `watch` and `end_all` can end."""
        has_begun = is_complete = False

        async def watched(message: Message) -> None:
            nonlocal has_begun, is_complete
            if message["type"] == "http.response.start":
                has_begun = True
            elif message["type"] == "http.response.body":
                is_complete = not message.get("more_body", False)
            await send(message)

        task = asyncio.ensure_future(self._app(scope, receive, watched))
        self._open[task] = identity
        self._counts[identity.key] += 1
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            del self._open[task]
            self._counts[identity.key] -= 1
            if not self._counts[identity.key]:
                del self._counts[identity.key]
        if not task.cancelled():
            task.result()
        elif not has_begun:
            await self._refuse_ended(scope, receive, send)
        elif not is_complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse_ended(self, scope: Scope, receive: Receive, send: Send) -> None:
        error = (
            HttpError("not-ready", "this server has ended", retryable=True)
            if self._is_ending
            else HttpError("unauthenticated", "the token or the session of this request has ended")
        )
        await problem(error, scope[TRACE])(scope, receive, send)

    async def watch(self) -> None:
        """End the requests of identities whose token is revoked or whose session has ended. Never returns."""
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            for identity in set(self._open.values()):
                if not await self._server.authenticator.is_valid(identity):
                    self.end(identity)

    def end(self, identity: Identity) -> None:
        """End the open requests of an identity: those with the same token or in the same session."""
        for task, user in list(self._open.items()):
            if user == identity:
                task.cancel()

    async def end_all(self) -> None:
        """End all open requests, because the server ends."""
        self._is_ending = True
        for task in list(self._open):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._open, return_exceptions=True)


def callers_trace(scope: Scope) -> Trace | None:
    """The trace that a request continues; None if it names none."""
    header = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")
    return parse_traceparent(header.decode("latin-1"))


def _route(scope: Scope) -> tuple[str, bool] | None:
    route = scope.get(ROUTE)
    return None if route is None else (route.path, route.rule.is_stream)


class ForeignPage(HttpError):
    """A request that a web page of someone else may have sent."""

    def __init__(self, message: str, *, is_other_site: bool = False) -> None:
        super().__init__("foreign-page", message)
        self.is_other_site = is_other_site
        """Whether `Sec-Fetch-Site` is all that speaks against it."""


def foreign(headers: list[tuple[bytes, bytes]], names: frozenset[str]) -> ForeignPage | None:
    """Why a request may come from a foreign web page; None if it does not."""
    given = {name: [value for key, value in headers if key == name] for name in (b"host", b"origin", b"sec-fetch-site")}
    if any(len(values) > 1 for values in given.values()) or not given[b"host"]:
        return ForeignPage("the headers Host, Origin and Sec-Fetch-Site may occur once, and Host must")
    host = given[b"host"][0].decode("latin-1").lower()
    parsed = _AUTHORITY.fullmatch(host)
    if parsed is None or parsed[1] not in names:
        return ForeignPage("this server is not reached under the name in the header Host")
    if given[b"origin"] and not _is_same_origin(given[b"origin"][0].decode("latin-1").lower(), parsed):
        return ForeignPage("this server answers no pages of another origin")
    if given[b"sec-fetch-site"] and given[b"sec-fetch-site"][0] not in _SAME_SITE:
        return ForeignPage("this server answers no pages of another site", is_other_site=True)
    return None


def _is_same_origin(origin: str, host: re.Match[str]) -> bool:
    scheme, separator, authority = origin.partition("://")
    parsed = _AUTHORITY.fullmatch(authority)
    if not separator or scheme not in _DEFAULT_PORTS or parsed is None:
        return False
    port = _DEFAULT_PORTS[scheme]
    return parsed[1] == host[1] and int(parsed[2] or port) == int(host[2] or port)


def _is_top_level(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a browser loads a whole page, because a person followed a link."""
    given = dict(headers)
    return given.get(b"sec-fetch-mode") == b"navigate" and given.get(b"sec-fetch-dest") == b"document"
