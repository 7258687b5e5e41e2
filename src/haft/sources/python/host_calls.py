"""Runs in a worker process: if the function calls a tool, sends that call to the host, which carries it out.

A call goes to the host as a message on the pipe of the worker's output, and its outcome comes back as a line of the
worker's input. `HostInput` reads that input. Before the first call, `next_request` reads it directly. From the first
call on, a thread reads it and separates outcomes from requests, because a function that waits for an outcome may block
the main thread. `worker_calls` does the host's part.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from haft.contracts import BadUsage, Question, QuestionAnswer, ToolFailed, outcome_from
from haft.sources.python.frames import FrameWriter
from haft.sources.python.results import to_json

if TYPE_CHECKING:
    from concurrent.futures import Future
    from queue import SimpleQueue


def own_input() -> BinaryIO:
    """The input from the host, moved to a descriptor that the tool does not know. For the tool, stdin is empty."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return open(own, "rb")


class HostInput:
    """The lines that the host sends: requests and outcomes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._requests: SimpleQueue[bytes] | None = None
        self._waiting: dict[int, Future[Any]] = {}
        self._last = 0

    def next_request(self) -> bytes:
        """The next line that is not an outcome; empty at the end of the input."""
        return self._file.readline() if self._requests is None else self._requests.get()

    def expect(self) -> tuple[int, Future[Any]]:
        """A number for a new call, and the future of its outcome."""
        from concurrent.futures import Future
        from queue import SimpleQueue

        with self._lock:
            if self._requests is None:
                self._requests = SimpleQueue()
                threading.Thread(target=self._read, name="haft-outcomes", daemon=True).start()
            self._last += 1
            future: Future[Any] = Future()
            self._waiting[self._last] = future
            return self._last, future

    def _read(self) -> None:
        assert self._requests is not None
        while line := self._file.readline():
            message = json.loads(line)
            if "outcome" not in message:
                self._requests.put(line)
                continue
            with self._lock:
                future = self._waiting.pop(message["id"], None)
            if future is None:
                continue
            if message["failure"] is not None:
                future.set_exception(ToolFailed(message["failure"]))
            elif "answers" in message["outcome"]:
                future.set_result([QuestionAnswer(**one) for one in message["outcome"]["answers"]])
            else:
                future.set_result(outcome_from(message["outcome"]))
        self._requests.put(b"")
        with self._lock:
            waiting = [*self._waiting.values()]
        for future in waiting:
            future.set_exception(ToolFailed("the host process ended"))


def call_through_host(
    writer: FrameWriter, answers: HostInput, name: str, arguments: Mapping[str, Any] | None, timeout: float | None
) -> Any:
    """Let the host call a tool. If an event loop runs in this thread, returns an awaitable of the outcome. If not,
    waits and returns the outcome."""
    # The same errors as `service.call` raises, so that it does not matter where the function runs.
    if not isinstance(name, str):
        raise BadUsage(f"the name of a tool must be a text, not {name!r}")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise BadUsage(f"`arguments` must be a dict of names and values, not a `{type(arguments).__name__}`")
    given = to_json(dict(arguments or {}))
    number, future = answers.expect()
    writer.message({"call": {"id": number, "tool": name, "arguments": given, "timeout": timeout}})
    return _awaited(future)


def ask_through_host(writer: FrameWriter, answers: HostInput, questions: Sequence[Question]) -> Any:
    """Let the host ask. If an event loop runs in this thread, returns an awaitable of the answers. If not, waits and
    returns the answers."""
    asked = [to_json(question.to_json()) for question in questions]
    number, future = answers.expect()
    writer.message({"ask": {"id": number, "questions": asked}})
    return _awaited(future)


def _awaited(future: Future[Any]) -> Any:
    """The result of a future; an awaitable of it if an event loop runs in this thread."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return future.result()
    return asyncio.wrap_future(future)
