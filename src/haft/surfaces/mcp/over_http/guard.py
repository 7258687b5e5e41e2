"""The guard before every HTTP route: it refuses requests of web pages, and requests without a valid token.

It wraps the whole ASGI application, so that no route, method or upgrade gets past it. In this order it checks

1. `Host`: a name under which this server is reached. Without this check, a page could reach the server under a domain
   name of its own (DNS rebinding).
2. `Origin` and `Sec-Fetch-Site`: only pages of this very server, which has none. A page on another port of the same
   machine counts as foreign. haft never answers with CORS headers.
3. the token, in the header `Authorization: Bearer TOKEN`. Nothing switches this off, and no other place counts. Its
   role must allow calls, and it must be for this workspace. Whoever's token it is, over MCP its client is an agent.

The application sees the `ClientToken` of the request in the scope, and not the header. If a token is revoked, `watch`
ends its open requests and sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from haft.service import DEFAULT_NAME, LOOPBACK_NAMES
from haft.surfaces.mcp.callers import SCOPE_KEY, SESSION_HEADER
from haft.surfaces.mcp.offers.offered_tools import ONLY_TOOLS

if TYPE_CHECKING:
    from haft.service import ClientToken, Tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

Meet = Callable[[str, str, int], Awaitable[None]]
"""Called before each request, with the name of the client, and with the address and port it connects from."""

_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SAME_SITE: Final = frozenset({b"same-origin", b"none"})
_SECONDS_BETWEEN_LOOKS: Final = 0.5
_MOST_SESSIONS: Final = 10_000
MOST_OPEN: Final = 200
"""How many requests of one client can be open at once, so that each client leaves room for the others."""


class HttpGuard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: App,
        tokens: Tokens,
        *,
        names: Iterable[str] = LOOPBACK_NAMES,
        meet: Meet | None = None,
        workspace: str = DEFAULT_NAME,
    ) -> None:
        """`names`: the host names under which this server is reached. Any port will do, because ports can be
        forwarded. `meet` gets to know each client. `workspace` is the name that the workspace has for tokens."""
        self._meet = meet
        self._workspace = workspace
        self._app = app
        self._tokens = tokens
        self._names = frozenset(name.lower() for name in names)
        self._open: dict[asyncio.Task[Any], ClientToken] = {}
        self._sessions: dict[str, tuple[ClientToken, str]] = {}
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # Refused before it is accepted: HTTP status 403.
            return
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        problem = _foreign(headers, self._names)
        if problem is not None:
            await _refuse(send, 403, problem)
            return
        token = self._token(headers)
        if token is None:
            await _refuse(send, 401, "this server needs a valid token: send `Authorization: Bearer TOKEN`")
            return
        identity = token.identity()
        if not identity.may("call-tools") or not identity.may_enter(self._workspace):
            await _refuse(send, 403, "this token is not for calling tools in this workspace")
            return
        ONLY_TOOLS.set(identity.tools)  # For this request: the server runs each in a context of its own.
        if sum(user.id == token.id for user in self._open.values()) >= MOST_OPEN:
            await _refuse(send, 429, f"this client has {MOST_OPEN} open requests, and no more are answered")
            return
        if self._meet is not None and scope.get("client"):
            await self._meet(token.name, *scope["client"])
        scope = {**scope, SCOPE_KEY: token, "user": _user(token)}
        scope["headers"] = [(name, value) for name, value in headers if name not in (b"authorization", b"cookie")]
        await self._pass_on(token, scope, receive, send)

    def _token(self, headers: list[tuple[bytes, bytes]]) -> ClientToken | None:
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1:
            return None
        scheme, _, token = given[0].decode("latin-1").partition(" ")
        return self._tokens.find(token.strip()) if scheme.lower() == "bearer" else None

    async def _pass_on(self, token: ClientToken, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application in a task of its own, which `watch` and `end_all` can end."""
        has_begun = is_complete = False

        async def watched(message: Message) -> None:
            nonlocal has_begun, is_complete
            if message["type"] == "http.response.start":
                has_begun = True
                self._remember_session(token, scope, message)
            elif message["type"] == "http.response.body":
                is_complete = not message.get("more_body", False)
            await send(message)

        task = asyncio.ensure_future(self._app(scope, receive, watched))
        self._open[task] = token
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        finally:
            self._open.pop(task, None)
        if not task.cancelled():
            task.result()
        elif not has_begun:
            await self._refuse_ended(send)
        elif not is_complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse_ended(self, send: Send) -> None:
        if self._is_ending:
            await _refuse(send, 503, "this server has ended")
        else:
            await _refuse(send, 401, "the token of this client was revoked")

    def _remember_session(self, token: ClientToken, scope: Scope, message: Message) -> None:
        """Keep in mind which sessions of the older protocol a client opened."""
        name = SESSION_HEADER.encode()
        ended = scope["method"] == "DELETE" or message["status"] == 404
        for key, value in scope["headers"] if ended else message.get("headers", ()):
            session = bytes(value).decode("latin-1")
            if bytes(key).lower() != name:
                continue
            if not ended:
                self._sessions[session] = (token, scope["path"])
            elif session in self._sessions and self._sessions[session][0].id == token.id:
                del self._sessions[session]  # The session of another client goes on, whatever this one asked for.
        while len(self._sessions) > _MOST_SESSIONS:  # Sessions that end by themselves are forgotten by age.
            del self._sessions[next(iter(self._sessions))]

    async def watch(self) -> None:
        """End the requests and sessions of tokens that are revoked while this server runs. Never returns."""
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            users = {token.id: token for token in self._open.values()}
            users |= {token.id: token for token, _ in self._sessions.values()}
            for token in users.values():
                if not self._tokens.is_valid(token):
                    await self.end(token)

    async def end(self, token: ClientToken) -> None:
        """End the open requests and the sessions of a token, and so the calls that they make."""
        for task, user in list(self._open.items()):
            if user.id == token.id:
                task.cancel()
        for session, (user, path) in list(self._sessions.items()):
            if user.id == token.id:
                del self._sessions[session]
                with contextlib.suppress(Exception):  # A session that has ended already.
                    await self._app(_end_of_session(token, session, path), _nothing, _ignored)

    def end_all(self) -> None:
        """End all open requests, because the server ends."""
        self._is_ending = True
        for task in list(self._open):
            task.cancel()


def _foreign(headers: list[tuple[bytes, bytes]], names: frozenset[str]) -> str | None:
    """Why a request may come from a foreign web page; None if it does not."""
    given = {name: [value for key, value in headers if key == name] for name in (b"host", b"origin", b"sec-fetch-site")}
    if any(len(values) > 1 for values in given.values()) or not given[b"host"]:
        return "the headers Host, Origin and Sec-Fetch-Site may occur once, and Host must"
    host = given[b"host"][0].decode("latin-1").lower()
    parsed = _AUTHORITY.fullmatch(host)
    if parsed is None or parsed[1] not in names:
        return "this server is not reached under the name in the header Host"
    if given[b"origin"] and not _is_same_origin(given[b"origin"][0].decode("latin-1").lower(), parsed):
        return "this server answers no pages of another origin"
    if given[b"sec-fetch-site"] and given[b"sec-fetch-site"][0] not in _SAME_SITE:
        return "this server answers no pages of another site"
    return None


def _is_same_origin(origin: str, host: re.Match[str]) -> bool:
    scheme, separator, authority = origin.partition("://")
    parsed = _AUTHORITY.fullmatch(authority)
    if not separator or scheme not in _DEFAULT_PORTS or parsed is None:
        return False
    port = _DEFAULT_PORTS[scheme]
    return parsed[1] == host[1] and int(parsed[2] or port) == int(host[2] or port)


def _user(token: ClientToken) -> AuthenticatedUser:
    """The client as the `mcp` package knows users: it binds sessions to them. The token itself is not in it."""
    return AuthenticatedUser(AccessToken(token="", client_id=token.id, scopes=[]))


def _end_of_session(token: ClientToken, session: str, path: str) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "DELETE",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(SESSION_HEADER.encode(), session.encode("latin-1"))],
        "client": None,
        "server": None,
        SCOPE_KEY: token,
        "user": _user(token),
    }


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignored(_message: Message) -> None:
    return


async def _refuse(send: Send, status: int, message: str) -> None:
    """Answer with an error, in the form that MCP clients show. The body of the request is not read."""
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    body = json.dumps(told).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="haft"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
