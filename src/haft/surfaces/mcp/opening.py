"""Opens what a server needs, for stdio and HTTP alike: the service, its clients, the sealing of request states."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import Final

from haft.service import Tokens, ToolService, user_name
from haft.surfaces.mcp.callers import Callers
from haft.surfaces.mcp.dialogue import Dialogue
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.request_state import protect_request_states
from haft.surfaces.mcp.server import HaftServer

SECONDS_TO_END: Final = 2.0
"""How long the service may take to end everything that it started. Then the process ends anyway, and its helper ends
the rest."""
SHORTEST_STATE: Final = 600.0
"""How many seconds a request state is good at least."""


@contextlib.asynccontextmanager
async def opened(options: ServeOptions, stop: asyncio.Event) -> AsyncIterator[HaftServer]:
    """A context manager around a server whose service is open. SIGINT, SIGTERM and SIGHUP set `stop`; another signal
    after that ends the process at once."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
    dialogue = Dialogue()
    service = ToolService.open(
        options.workspace,
        approver=dialogue,
        approves_connections=True,
        answers_questions=True,
        answerable=dialogue.answerable,
    )
    limit = None
    try:
        async with service:
            tokens = Tokens(service.home)
            callers = Callers(user_name(), token_names=lambda: {token.name for token in tokens.all()})
            dialogue.configure(service.workspace, service.config.trusted_clients)
            served = HaftServer(service, options, callers.principal_of, dialogue)
            seconds = max(SHORTEST_STATE, service.config.approval_seconds)
            protect_request_states(served.server, callers, service.home, workspace=service.workspace, seconds=seconds)
            watching = asyncio.create_task(served.news.watch())
            try:
                yield served
            finally:
                watching.cancel()
                limit = loop.call_later(SECONDS_TO_END, os._exit, 0)
    finally:
        if limit is not None:
            limit.cancel()
