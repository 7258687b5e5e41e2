"""Runs in the host: carries out the calls that a worker process makes, and sends the outcomes to the worker.

A worker is not trusted: each of its calls is decided, recorded and limited like any other call of its run. `host_calls`
does the worker's part.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, get_args

from haft.contracts import HaftError, Question, QuestionMethod, ToolContext
from haft.sources.python.results import to_json

MOST_AT_ONCE: Final = 100
"""The most calls of one worker that have not ended, or whose outcome the worker has not read."""
MOST_REFUSALS: Final = 1_000
"""The most refusals that may wait for a worker that does not read its input."""


class WorkerCalls:
    """The calls of other tools that one worker process makes while it carries out one call."""

    def __init__(self) -> None:
        self._send: Callable[[bytes], Awaitable[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def begun(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Called when the worker has started; `send` writes to the worker's input."""
        self._send = send

    def make(self, request: Any, context: ToolContext) -> None:
        """Carry out a worker's request. Raises `LookupError`, `TypeError` or `ValueError` if the request cannot be
        understood."""
        number, name = request["id"], str(request["tool"])
        arguments, timeout = request["arguments"], request["timeout"]
        if not isinstance(number, int) or not isinstance(arguments, Mapping):
            raise TypeError
        if not isinstance(timeout, int | float | None):
            raise TypeError
        self._do(number, lambda: self._made(number, name, arguments, timeout, context), f"`{name}` was not called")

    def ask(self, request: Any, context: ToolContext) -> None:
        """Ask a worker's questions. Raises `LookupError`, `TypeError` or `ValueError` if the request cannot be
        understood."""
        number, given = request["id"], request["questions"]
        if not isinstance(number, int) or not isinstance(given, list):
            raise TypeError
        questions = [question_from(one) for one in given]
        self._do(number, lambda: self._asked(number, questions, context), "nobody was asked")

    def _do(self, number: int, work: Callable[[], Coroutine[Any, Any, None]], undone: str) -> None:
        """Start a worker's request, unless too many of its requests have not ended."""
        if len(self._tasks) < MOST_AT_ONCE:
            doing = work()
        elif len(self._tasks) < MOST_AT_ONCE + MOST_REFUSALS:
            why = f"{MOST_AT_ONCE} calls of this tool have not ended, or it has not read their outcomes"
            doing = self._tell(number, None, f"{undone}: {why}")
        else:
            return  # No answer: the worker does not read its input.
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
        except Exception as error:  # Whatever happened, the worker waits for an answer.
            await self._tell(number, None, f"`{name}` was not called: {error!r}")
        else:
            await self._tell(number, outcome.to_json(), None)

    async def _asked(self, number: int, questions: Sequence[Question], context: ToolContext) -> None:
        try:
            answers = [one.to_json() for one in await context.ask(*questions)]
        except HaftError as error:
            await self._tell(number, None, error.message)
        except Exception as error:  # Whatever happened, the worker waits for an answer.
            await self._tell(number, None, f"nobody was asked: {error!r}")
        else:
            await self._tell(number, {"answers": answers}, None)

    async def _tell(self, number: int, outcome: Mapping[str, Any] | None, failure: str | None) -> None:
        """Send the outcome or the failure of a call to the worker. Returns when the worker has read it."""
        if self._send is not None:
            message = {"id": number, "outcome": to_json(outcome), "failure": failure}
            await self._send(json.dumps(message).encode("ascii") + b"\n")


def question_from(form: Any) -> Question:
    """The question that another process wrote as JSON. Raises `TypeError` or `ValueError` if it is none."""
    method, params, key = form["method"], form["params"], form.get("key", "")
    if method not in get_args(QuestionMethod) or not isinstance(params, Mapping) or not isinstance(key, str):
        raise ValueError(method)
    return Question(method, dict(params), key=key)
