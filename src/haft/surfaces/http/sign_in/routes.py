"""The routes of signing in and out.

GET  /sign-in                  the page: for a token, for the link of the server, and for an identity provider
POST /sign-in/session          a token or the token of a link, for the cookie of a session
POST /sign-in/out              ends the session
GET  /sign-in/oidc             to the identity provider
GET  /sign-in/oidc/callback    back from it: the one route that is answered although a page of another site led there
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from haft.contracts import HaftError
from haft.service import KnownPeople, SignInLinks, user_name
from haft.surfaces.http.api.problems import HttpError
from haft.surfaces.http.rules import SIGN_IN, GuardedRoute, Rule
from haft.surfaces.http.sign_in.authenticator import SignIn
from haft.surfaces.http.sign_in.cookies import SESSION, STATE, cookie_name, cookies, set_cookie
from haft.surfaces.http.sign_in.oidc import SECONDS, SignInRefused
from haft.surfaces.http.sign_in.page import sign_in_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from haft.service import Session
    from haft.surfaces.http.server import Server

_BODY_BYTES: Final = 4_096
_SCRIPT: Final = os.path.join(os.path.dirname(__file__), "sign_in.js")


def sign_in_routes(server: Server) -> list[BaseRoute]:
    """The routes of a server on which people can sign in."""
    sign_in = server.authenticator
    if not isinstance(sign_in, SignIn):
        return []
    routes = _Routes(server, sign_in)
    public = Rule(is_public=True)
    found: list[BaseRoute] = [
        GuardedRoute(SIGN_IN, routes.page, rule=public),
        GuardedRoute(f"{SIGN_IN}/sign_in.js", routes.script, rule=public),
        GuardedRoute(
            f"{SIGN_IN}/session", routes.begin, rule=Rule(is_public=True, body_bytes=_BODY_BYTES), methods=["POST"]
        ),
        GuardedRoute(f"{SIGN_IN}/out", routes.end, rule=public, methods=["POST"]),
    ]
    if sign_in.oidc is not None:
        found += [
            GuardedRoute(f"{SIGN_IN}/oidc", routes.to_provider, rule=public),
            GuardedRoute(
                f"{SIGN_IN}/oidc/callback", routes.from_provider, rule=Rule(is_public=True, from_elsewhere=True)
            ),
        ]
    return found


class _Routes:
    """The routes, with what they share."""

    def __init__(self, server: Server, sign_in: SignIn) -> None:
        self._server = server
        self._sign_in = sign_in
        self._links = SignInLinks(server.home)
        self._people = KnownPeople(server.home)

    async def page(self, request: Request) -> Response:
        to = local_address(request.query_params.get("to"))
        return sign_in_page(to=to, has_provider=self._sign_in.oidc is not None)

    async def script(self, _request: Request) -> Response:
        return FileResponse(_SCRIPT, media_type="text/javascript")

    async def begin(self, request: Request) -> Response:
        """A token for a session."""
        token = await _token_in(request)
        sessions = self._sign_in.sessions
        if token.startswith("haftlink_"):
            if not self._links.use(token):
                raise HttpError(
                    "unauthenticated",
                    "this link was used before, or is too old",
                    hint="`haft tokens link` prints another one",
                )
            session, secret = sessions.begin(user_name(), "link")
        else:
            found = self._sign_in.tokens.find(token)
            if found is None:
                raise HttpError("unauthenticated", "this token is wrong, expired or revoked")
            session, secret = sessions.begin(found.name, "token", subject=found.id, until=found.expires_at)
        return self._signed_in(request, session, secret, JSONResponse({"name": session.name}))

    async def end(self, request: Request) -> Response:
        """Sign out."""
        session = self._sign_in.session_of(request.scope)
        if session is not None:
            self._sign_in.sessions.end(session.id)
        answer = RedirectResponse(SIGN_IN, 303)
        self._set(request, answer, SESSION, "", seconds=0)
        return answer

    async def to_provider(self, request: Request) -> Response:
        assert self._sign_in.oidc is not None
        to = local_address(request.query_params.get("to"))
        try:
            address, state = await self._sign_in.oidc.begin(self._callback(request), to)
        except SignInRefused as error:
            return self._refused(error)
        answer = RedirectResponse(address, 303)
        self._set(request, answer, STATE, state, seconds=SECONDS)
        return answer

    async def from_provider(self, request: Request) -> Response:
        provider = self._sign_in.oidc
        assert provider is not None
        name = cookie_name(STATE, request.scope, has_tls=self._sign_in.has_tls)
        state = next(cookies(request.scope, name), None)
        try:
            found = await provider.finish(self._callback(request), dict(request.query_params), state)
            issuer = provider.settings.issuer
            who = self._people.name_of(issuer, found.subject, found.names, found.email)
            subject = json.dumps([issuer, found.subject])
            session, secret = self._sign_in.sessions.begin(who, "oidc", subject=subject, groups=found.groups)
        except HaftError as error:
            answer = self._refused(error)
        else:
            answer = self._signed_in(request, session, secret, RedirectResponse(found.to, 303))
        self._set(request, answer, STATE, "", seconds=0)
        return answer

    def _refused(self, error: HaftError) -> Response:
        told = error.message if error.hint is None else f"{error.message}. {error.hint[:1].upper()}{error.hint[1:]}"
        return sign_in_page(to="/", has_provider=True, problem=told, status=403)

    def _signed_in(self, request: Request, session: Session, secret: str, answer: Response) -> Response:
        before = self._sign_in.session_of(request.scope)
        if before is not None:
            self._sign_in.sessions.end(before.id)
        self._set(request, answer, SESSION, secret, seconds=session.expires_at - time.time())
        return answer

    def _set(self, request: Request, answer: Response, kind: str, value: str, *, seconds: float) -> None:
        has_tls = self._sign_in.has_tls
        name = cookie_name(kind, request.scope, has_tls=has_tls)
        set_cookie(
            answer, name, value, seconds=seconds, same_site="strict" if kind == SESSION else "lax", has_tls=has_tls
        )

    def _callback(self, request: Request) -> str:
        """The address to which the provider sends the browser back: this server, as the browser reached it."""
        scheme = "https" if self._sign_in.has_tls else "http"
        return f"{scheme}://{request.headers['host']}{SIGN_IN}/oidc/callback"


def local_address(text: str | None) -> str:
    """An address of this server, for after signing in; `/` if the text is another one."""
    if not text or not text.startswith("/") or text.startswith("//") or not text.isprintable() or "\\" in text:
        return "/"
    parts = urlsplit(text)
    return "/" if parts.scheme or parts.netloc or parts.path.startswith(SIGN_IN) else text


async def _token_in(request: Request) -> str:
    """The token in the body of a request."""
    is_json = request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
    try:
        told = json.loads(await request.body()) if is_json else None
    except ValueError:
        told = None
    token = told.get("token") if isinstance(told, dict) else None
    if not isinstance(token, str):
        raise HttpError("invalid-request", 'the body must be JSON: {"token": "…"}')
    return token.strip()
