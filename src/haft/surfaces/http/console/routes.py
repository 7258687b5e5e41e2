"""The routes of the console: its pages, all of them GET, and its static files."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse, Response

from haft.contracts import HaftError
from haft.surfaces.http.api.ask import Ask
from haft.surfaces.http.api.problems import facts_of
from haft.surfaces.http.asgi import IDENTITY, TRACE
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.pages import PAGES
from haft.surfaces.http.console.place import place_of
from haft.surfaces.http.console.rendering import rendered
from haft.surfaces.http.console.static_files import static_files
from haft.surfaces.http.rules import GuardedRoute, Rule

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from haft.surfaces.http.server import Server

FOR_PEOPLE: Final = Rule(is_page=True)
"""A page: the operations that it performs check what the identity may see."""
FOR_ALL: Final = Rule(is_public=True)
"""Styles and scripts are the same for everybody, and the sign-in page needs them."""


def routes(server: Server) -> list[BaseRoute]:
    """All routes of the console."""

    async def first(request: Request) -> Response:
        """The first page: what happens now, in the first workspace that this person may enter."""
        found = Ask(server, request.scope[IDENTITY]).workspaces()
        if not found:
            return rendered("nowhere.html", {"who": request.scope[IDENTITY].name}, 403)
        return RedirectResponse(f"/w/{found[0].name}/now", 303)

    async def workspace(request: Request) -> Response:
        return RedirectResponse(f"/w/{request.path_params['workspace']}/now", 303)

    return [
        GuardedRoute("/", first, rule=FOR_PEOPLE),
        GuardedRoute("/w/{workspace}", workspace, rule=FOR_PEOPLE),
        *(GuardedRoute(f"/w/{{workspace}}{page.path}", _shown(server, page), rule=FOR_PEOPLE) for page in PAGES),
        GuardedRoute("/static/{name:path}", static_files().answer, rule=FOR_ALL),
    ]


def _shown(server: Server, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a page."""

    async def endpoint(request: Request) -> Response:
        began = time.time()
        parameters = dict(request.path_params)
        ask = Ask(server, request.scope[IDENTITY])
        try:
            ask = ask.within(parameters.pop("workspace"))
            asked = PageRequest(ask, parameters, request.query_params)
            view = await page.show(asked)
        except HaftError as error:
            view = _failed(error, request)
        if view.go_to is not None:
            return RedirectResponse(view.go_to, 303)
        place = await place_of(ask, page.section, view.title, began)
        return rendered(view.template, {"place": place, **view.facts}, view.status)

    return endpoint


def _failed(error: HaftError, request: Request) -> View:
    """What a page shows instead of its content if it cannot be shown."""
    facts = facts_of(error, request.scope.get(TRACE, ""))
    return View("failed.html", facts["title"], {"problem": facts}, facts["status"])
