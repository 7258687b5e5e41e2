"""The rule of a route: who may use it, and how. Every route of the application has one, and checks it itself before it
does anything else; a test walks the routes, and fails if one has none."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from haft.surfaces.http.api.problems import Forbidden, HttpError, problem
from haft.surfaces.http.asgi import IDENTITY, ROUTE, TRACE, App, Message, Receive, Scope, Send
from haft.values import dataclass

if TYPE_CHECKING:
    from starlette.requests import Request

    from haft.service import Action, Identity

SIGN_IN: Final = "/sign-in"
"""The page to which a page leads that nobody may see without signing in."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may use a route, and how."""

    action: Action | None = None
    """What the identity must be allowed to do; None: every identity may use it."""
    is_public: bool = False
    """Whether it is answered without an identity."""
    from_elsewhere: bool = False
    """Whether it is also answered if a page of another site led here: only for the callback of OIDC."""
    is_page: bool = False
    """Whether it is a page for people: without an identity, it leads to the sign-in page."""
    is_stream: bool = False
    """Whether its answers do not end by themselves, so that they have limits of their own."""
    body_bytes: int = 0
    """The longest body of a request."""


class TooLarge(HttpError):
    """A request with a body that is longer than its route takes."""

    def __init__(self, most: int) -> None:
        super().__init__("too-large", f"the body is longer than the {most:_} bytes that are taken here")


class GuardedRoute(Route):
    """A route that checks its rule."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]] | App,
        *,
        rule: Rule,
        methods: Sequence[str] = ("GET",),
        name: str | None = None,
    ) -> None:
        super().__init__(path, endpoint, methods=list(methods), name=name)
        self.rule = rule

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self
        await checked(self.rule, super().handle, scope, receive, send)


class GuardedMount(Mount):
    """An application at a path that checks its rule before."""

    def __init__(self, path: str, app: Any, *, rule: Rule, name: str | None = None) -> None:
        super().__init__(path, app=app, name=name)
        self.rule = rule

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self
        await checked(self.rule, super().handle, scope, receive, send)


async def checked(rule: Rule, app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application if the request fits the rule; else refuse it."""
    refusal = _refusal(rule, scope)
    if refusal is not None:
        await refusal(scope, receive, send)
        return
    body = _Body(rule.body_bytes, receive)
    if body.is_too_long(scope):
        await problem(TooLarge(rule.body_bytes), scope[TRACE])(scope, receive, send)
        return
    await app(scope, body.receive, send)


def _refusal(rule: Rule, scope: Scope) -> Response | None:
    identity: Identity | None = scope[IDENTITY]
    if identity is None:
        if rule.is_public:
            return None
        if rule.is_page and scope["method"] in ("GET", "HEAD"):
            return RedirectResponse(f"{SIGN_IN}?to={quote(_here(scope), safe='')}", 303)
        unknown = HttpError("unauthenticated", "this needs a valid token: send `Authorization: Bearer TOKEN`")
        unknown.headers["www-authenticate"] = 'Bearer realm="haft"'
        return problem(unknown, scope[TRACE])
    if rule.action is not None and not identity.may(rule.action):
        return problem(Forbidden(identity, rule.action), scope[TRACE])
    return None


def _here(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"{scope['path']}?{query}" if query else f"{scope['path']}"


_DIGITS: Final = re.compile(rb"[0-9]{1,18}")


class _Body:
    """The body of a request, which may not be longer than its route takes."""

    def __init__(self, most: int, receive: Receive) -> None:
        self._most = most
        self._receive = receive
        self._length = 0

    def is_too_long(self, scope: Scope) -> bool:
        """Whether the request itself says that it is."""
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        return _DIGITS.fullmatch(said) is None or int(said) > self._most

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._length += len(message.get("body", b""))
            if self._length > self._most:
                raise TooLarge(self._most)
        return message
