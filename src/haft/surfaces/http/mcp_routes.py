"""The routes of MCP: `/mcp` for the first workspace, and `/mcp/NAME` for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.contracts import HaftError
from haft.surfaces.http.api.ask import Ask
from haft.surfaces.http.api.problems import problem
from haft.surfaces.http.asgi import IDENTITY, TRACE
from haft.surfaces.http.rules import GuardedRoute, Rule

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from haft.surfaces.http.asgi import App, Receive, Scope, Send
    from haft.surfaces.http.server import Server

PATH: Final = "/mcp"
MOST_BODY_BYTES: Final = 32_000_000
METHODS: Final = ("GET", "POST", "DELETE")


def mcp_routes(server: Server, applications: Mapping[str, App]) -> list[BaseRoute]:
    """The routes of the MCP applications, by the names of their workspaces."""
    rule = Rule(action="call-tools", is_stream=True, body_bytes=MOST_BODY_BYTES)
    first = next(iter(applications))
    return [
        GuardedRoute(PATH, _OfWorkspace(server, applications, first), rule=rule, methods=METHODS, name="mcp"),
        GuardedRoute(
            f"{PATH}/{{workspace}}", _OfWorkspace(server, applications), rule=rule, methods=METHODS, name="mcpOf"
        ),
    ]


class _OfWorkspace:
    """An ASGI application that passes a request on to that of its workspace."""

    def __init__(self, server: Server, applications: Mapping[str, App], name: str | None = None) -> None:
        self._server = server
        self._applications = applications
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = self._name or scope["path_params"]["workspace"]
        try:
            ask = Ask(self._server, scope[IDENTITY]).within(name)
        except HaftError as error:
            await problem(error, scope[TRACE])(scope, receive, send)
            return
        inner: dict[str, Any] = {**scope, "path": PATH, "raw_path": PATH.encode(), "root_path": ""}
        await self._applications[ask.here.name](inner, receive, send)
