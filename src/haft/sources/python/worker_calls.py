"""In the host: carries out the calls that a worker process makes, and tells it how they ended.

A worker can say whatever it likes: what it asks for is a call like any other, decided, recorded and bounded as the
calls of its own run. `host_calls` is the worker's side.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from haft.contracts import HaftError, ToolContext
from haft.sources.python.results import to_json

MOST_AT_ONCE: Final = 100
"""Calls of one worker that have not ended, or whose outcome it has not read."""
MOST_REFUSALS: Final = 1_000
"""So many words that a call is refused may wait for a worker that does not read them."""


class WorkerCalls:
    """The calls of one worker's call."""

    def __init__(self) -> None:
        self._send: Callable[[bytes], Awaitable[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begun(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """The worker runs; `send` gives it more input."""
        self._send = send

    def make(self, said: Any, context: ToolContext) -> None:
        """Do what a worker asks for. `LookupError` and its like where it asks for nothing that can be understood."""
        number, name, arguments, timeout = said["id"], str(said["tool"]), said["arguments"], said["timeout"]
        if not isinstance(number, int) or not isinstance(arguments, Mapping):
            raise TypeError
        if not isinstance(timeout, int | float | None):
            raise TypeError
        if len(self._tasks) < MOST_AT_ONCE:
            doing = self._made(number, name, arguments, timeout, context)
        elif len(self._tasks) < MOST_AT_ONCE + MOST_REFUSALS:
            why = f"{MOST_AT_ONCE} calls of this tool have not ended, or it has not read their outcomes"
            doing = self._tell(number, None, f"`{name}` was not called: {why}")
        else:
            return  # It does not read what it is told.
        task = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _made(
        self, number: int, name: str, arguments: Mapping[str, Any], seconds: float | None, context: ToolContext
    ) -> None:
        try:
            outcome = await context.call(name, arguments, timeout=seconds)
        except HaftError as error:
            await self._tell(number, None, error.message)
        except Exception as error:  # Whatever it is, the worker waits for an answer.
            await self._tell(number, None, f"`{name}` was not called: {error!r}")
        else:
            await self._tell(number, outcome.to_json(), None)

    async def _tell(self, number: int, outcome: Mapping[str, Any] | None, failure: str | None) -> None:
        """Over when the worker has read it."""
        if self._send is not None:
            said = {"id": number, "outcome": to_json(outcome), "failure": failure}
            await self._send(json.dumps(said).encode("ascii") + b"\n")
