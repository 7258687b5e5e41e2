"""The end of a server: from the first signal until the process is gone.

1. The server is not ready any more: `/readyz` says so, and new calls are refused, to be made again later.
2. The streams end, and tell their clients to come back.
3. Running calls may go on for `server.drain_seconds`. Then they are cancelled.
4. Calls that wait for a person stay as they are, and the next server goes on with them.

A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from haft.surfaces.http.api.problems import HttpError, problem
from haft.surfaces.http.asgi import TRACE

if TYPE_CHECKING:
    from haft.surfaces.http.asgi import App, Receive, Scope, Send
    from haft.surfaces.http.server import Server

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECONDS_TO_CLOSE: Final = 20.0
"""How long the server may take to end after its calls have. Then the process ends anyway."""
SECONDS_BETWEEN_LOOKS: Final = 0.05
RETRY_SECONDS: Final = 5
"""When a client should try again."""
OPEN_PATHS: Final = ("/healthz", "/readyz")


class Ending:
    """Hears signals, and lets the running calls end."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        """Set by the first signal."""
        self._loop = asyncio.get_running_loop()
        self._before: dict[signal.Signals, Any] = {}
        self._signals = 0

    def __enter__(self) -> Self:
        # Not `loop.add_signal_handler`: a busy loop would handle the signal late.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._signals += 1
        if self._signals > 1:
            os._exit(128 + number)
        with contextlib.suppress(RuntimeError):  # The loop has ended, and the process is about to.
            self._loop.call_soon_threadsafe(self.asked.set)

    async def drain(self, server: Server, seconds: float) -> None:
        """Take no new calls, and wait until the running ones have ended, but no longer than so many seconds."""
        server.readiness.reason = "the server is ending"
        server.hub.end_all("the server is ending")
        until = self._loop.time() + seconds
        while self._loop.time() < until and any(each.service.runs.busy for each in server.workspaces):  # noqa: ASYNC110
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


def end_later(seconds: float) -> threading.Timer:
    """End the process after so many seconds, whatever it does then. A timer of the event loop could not: the loop may
    be busy, or wait for a thread that does not end."""
    timer = threading.Timer(seconds, os._exit, [0])
    timer.daemon = True
    timer.start()
    return timer


class UntilTheEnd:
    """An ASGI application around another one, which refuses new work while the server ends. Reading goes on, so that
    clients learn how their calls end."""

    def __init__(self, app: App, server: Server) -> None:
        self._app = app
        self._server = server
        self.is_closed = False
        """Whether the services are closed, so that nothing can be answered any more."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = self._server.readiness.reason
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and not self.is_closed
        if reason is None or scope["type"] != "http" or is_reading or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        refusal = HttpError("not-ready", reason, hint="try again in a moment", retryable=True)
        refusal.headers.update({"retry-after": str(RETRY_SECONDS), "connection": "close"})
        await problem(refusal, scope.get(TRACE) or os.urandom(16).hex())(scope, receive, send)
