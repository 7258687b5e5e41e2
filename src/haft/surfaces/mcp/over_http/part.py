"""MCP as a part of a server that serves other things too: `haft serve http`. Its own guard stands before it there as
well, behind that of the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from haft.service import LocalClients, user_name
from haft.surfaces.mcp.callers import Callers
from haft.surfaces.mcp.dialogues.dialogue import Dialogue
from haft.surfaces.mcp.dialogues.request_state import protect_request_states
from haft.surfaces.mcp.opening import SHORTEST_STATE
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.over_http.app import application
from haft.surfaces.mcp.over_http.guard import HttpGuard
from haft.surfaces.mcp.server import HaftServer

if TYPE_CHECKING:
    from haft.service import Tokens, ToolService


class HttpPart:
    """MCP for one workspace."""

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._options = ServeOptions(path)
        self._dialogue = Dialogue()

    @property
    def service_options(self) -> Mapping[str, Any]:
        """Options for the service of the workspace. The dialogue answers nothing that no client of MCP asked for: such
        requests wait in the inbox."""
        return {
            "approver": self._dialogue,
            "approves_connections": True,
            "answers_questions": True,
            "answerable": self._dialogue.answerable,
        }

    @contextlib.asynccontextmanager
    async def running(self, service: ToolService, tokens: Tokens, names: frozenset[str]) -> AsyncIterator[HttpGuard]:
        """The application, while it runs."""
        dialogue = self._dialogue
        callers = Callers(user_name(), token_names=lambda: {token.name for token in tokens.all()})
        dialogue.configure(service.workspace, service.trusted_clients)
        served = HaftServer(service, self._options, callers.principal_of, dialogue)
        seconds = max(SHORTEST_STATE, service.config.approval_seconds)
        protect_request_states(served.server, callers, service.home, workspace=service.workspace, seconds=seconds)
        greeting = served.init_options()
        vars(served.server)["create_initialization_options"] = lambda: greeting
        app = application(served.server)
        clients = LocalClients(service.home)
        guard = HttpGuard(app, tokens, names=names, meet=clients.meet, workspace=self._name)
        async with app.router.lifespan_context(app):
            tasks = [asyncio.create_task(served.news.watch()), asyncio.create_task(guard.watch())]
            try:
                yield guard
            finally:
                for task in tasks:
                    task.cancel()
                guard.end_all()
                clients.close()
