"""Opens what a server needs, for stdio and HTTP alike: the service, its clients, the sealing of request states."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator
from typing import Final, Self

from haft.service import Tokens, ToolService, user_name
from haft.surfaces.mcp.callers import Callers
from haft.surfaces.mcp.dialogues.dialogue import Dialogue
from haft.surfaces.mcp.dialogues.request_state import protect_request_states
from haft.surfaces.mcp.options import ServeOptions
from haft.surfaces.mcp.server import HaftServer

SECONDS_TO_END: Final = 4.0
"""How long the server may take to end its requests and everything that it started. Then the process ends anyway, and
its helper ends the rest."""
SECONDS_FOR_SERVICE: Final = 2.0
"""How much of this the service may take."""
SHORTEST_STATE: Final = 600.0
"""How many seconds a request state is good at least."""


class EndLimit:
    """Ends the process if its end takes too long. A timer of the event loop could not: the loop may be busy, or wait
    for a thread that does not end."""

    def __init__(self) -> None:
        self._timers: list[threading.Timer] = []

    def begin(self, seconds: float) -> None:
        """Let the process end after so many seconds at the latest."""
        timer = threading.Timer(seconds, os._exit, [0])
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for timer in self._timers:
            timer.cancel()


@contextlib.asynccontextmanager
async def opened(options: ServeOptions, stop: asyncio.Event, limit: EndLimit) -> AsyncIterator[HaftServer]:
    """A context manager around a server whose service is open. SIGINT, SIGTERM and SIGHUP set `stop`; another signal
    after that ends the process at once."""
    loop = asyncio.get_running_loop()
    signals = 0

    def end(_number: int, _frame: object) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(130)
        limit.begin(SECONDS_TO_END)
        with contextlib.suppress(RuntimeError):  # The loop has ended, and the process is about to.
            loop.call_soon_threadsafe(stop.set)

    # Not `loop.add_signal_handler`: a busy loop would handle the signal late.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    dialogue = Dialogue()
    service = ToolService.open(
        options.workspace,
        approver=dialogue,
        approves_connections=True,
        answers_questions=True,
        answerable=dialogue.answerable,
    )
    async with service:
        tokens = Tokens(service.home)
        callers = Callers(user_name(), token_names=lambda: {token.name for token in tokens.all()})
        dialogue.configure(service.workspace, service.trusted_clients)
        served = HaftServer(service, options, callers.principal_of, dialogue)
        seconds = max(SHORTEST_STATE, service.config.approval_seconds)
        protect_request_states(served.server, callers, service.home, workspace=service.workspace, seconds=seconds)
        watching = asyncio.create_task(served.news.watch())
        try:
            yield served
        finally:
            watching.cancel()
            limit.begin(SECONDS_FOR_SERVICE)
