"""The application: the routes of the API, the streams, the console and the sign-in pages, behind the guard."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from haft.contracts import Bug, HaftError
from haft.surfaces.http import console, metrics, sign_in, streams
from haft.surfaces.http.api import routes as api
from haft.surfaces.http.api.problems import HttpError, problem
from haft.surfaces.http.asgi import TRACE
from haft.surfaces.http.guard import Guard
from haft.surfaces.http.rules import GuardedMount, GuardedRoute, Rule

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from haft.surfaces.http.server import Server

_log = logging.getLogger("haft")


def routes(server: Server) -> list[BaseRoute]:
    """All routes of a server."""
    found = [
        *health(server),
        *metrics.routes(server),
        *api.routes(server),
        *streams.routes(server),
        *sign_in.routes(server),
        *console.routes(server),
    ]
    for more in server.more_routes:
        found += more(server)
    return found


def application(server: Server) -> Guard:
    """The whole application of a server."""
    made = routes(server)
    for each in made:
        if not isinstance(each, GuardedRoute | GuardedMount):
            raise TypeError(f"{each} has no rule that says who may use it")
    app = Starlette(
        routes=made,
        exception_handlers={HTTPException: _on_http_exception, HaftError: _on_error, Exception: _on_bug},
    )
    app.state.server = server
    app.router.redirect_slashes = False
    open_paths = {each.path for each in made if isinstance(each, GuardedRoute) and each.rule.from_elsewhere}
    return Guard(app, server, from_elsewhere=open_paths)


def health(server: Server) -> list[BaseRoute]:
    """Whether the process lives, and whether it takes requests. They say nothing else, so everyone may ask."""

    async def lives(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def is_ready(_request: Request) -> Response:
        readiness = server.readiness
        return PlainTextResponse("ready\n") if readiness.is_ready else PlainTextResponse(f"{readiness.reason}\n", 503)

    return [
        GuardedRoute("/healthz", lives, rule=Rule(is_public=True)),
        GuardedRoute("/readyz", is_ready, rule=Rule(is_public=True)),
    ]


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "invalid-request")
    told = {404: "there is nothing at this address", 405: f"{request.method} is not answered at this address"}
    told_error = HttpError(code, told.get(error.status_code, error.detail))
    told_error.headers.update(error.headers or {})
    return problem(told_error, request.scope[TRACE])


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HaftError)
    return problem(error, request.scope[TRACE])


async def _on_bug(request: Request, error: Exception) -> Response:
    _log.error("request %s: %s %s", request.scope[TRACE], request.method, request.url.path, exc_info=error)
    return problem(Bug(error), request.scope[TRACE])
