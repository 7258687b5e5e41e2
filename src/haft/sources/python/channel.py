"""Carries messages from a function in a worker thread to the event loop, in order and with limited memory.

`invoke` opens one channel for each call in a thread. A thread that is faster than the loop has to wait, so an endless
generator does not fill the memory. When the call ends, the channel is closed and drops all further messages.
`ThreadContext` is the tool's context as the thread sees it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from haft.contracts import (
    EndedChild,
    Launcher,
    Limits,
    Question,
    QuestionMethod,
    RunId,
    Stream,
    ThreadId,
    ToolContext,
    ToolFailed,
    Workspace,
)

MOST_WAITING: Final = 256 * 1024
"""How many bytes may wait for the loop. The message that exceeds this limit is still accepted; after it, the thread
waits."""

_WEIGHT_OF_ONE: Final = 1024
"""Added to the size of each message, because many small messages fill memory too."""


class Channel:
    """Carries messages from one or more worker threads to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._room = threading.Condition(threading.Lock())
        self._waiting: list[tuple[Callable[..., None], tuple[Any, ...], Mapping[str, Any]]] = []
        self._weight = 0
        self._woken = False
        self.closed = False
        self.error: BaseException | None = None
        """An exception that a message raised in the loop. It is raised again in the thread, at the thread's next
        message."""

    def post(self, action: Callable[..., None], *args: Any, size: int = 0, **facts: Any) -> None:
        """Let the loop call `action`. Call this method in the thread; it blocks while too many messages are waiting."""
        with self._room:
            while self._weight >= MOST_WAITING and not self.closed:
                self._room.wait()
            if self.error is not None:
                raise self.error
            if self.closed:
                return
            self._waiting.append((action, args, facts))
            self._weight += size + _WEIGHT_OF_ONE
            wake, self._woken = not self._woken, True
        if wake:
            try:
                self.loop.call_soon_threadsafe(self.deliver)
            except RuntimeError:  # the loop is closed, and with it the call
                self.close()

    def close(self) -> None:
        """Release waiting threads, and drop further messages, because the call has ended."""
        with self._room:
            self.closed = True
            self._waiting = []
            self._room.notify_all()

    def deliver(self) -> None:
        """Call the actions of all waiting messages. Call this method on the loop."""
        with self._room:
            batch, self._waiting = self._waiting, []
            weight = self._weight
            self._woken = False
        try:
            for action, args, facts in batch:
                if self.closed:
                    break
                action(*args, **facts)
        except Exception as error:
            self.error = error
            self.close()
        with self._room:
            # Only now, because messages use memory until they are delivered.
            self._weight -= weight
            self._room.notify_all()


class ThreadContext:
    """A tool's context that is safe to use from a worker thread."""

    __slots__ = (
        "_channel",
        "_context",
        "config",
        "cwd",
        "env",
        "limits",
        "run",
        "thread",
        "who",
    )

    def __init__(self, context: ToolContext, channel: Channel) -> None:
        self._context = context
        self._channel = channel
        self.run: RunId = context.run
        self.thread: ThreadId = context.thread
        self.who: str = context.who
        self.limits: Limits = context.limits
        self.cwd: str = context.cwd
        self.env: Mapping[str, str] = context.env
        self.config: Mapping[str, Any] = context.config

    @property
    def workspace(self) -> Workspace:
        return self._context.workspace

    @property
    def launcher(self) -> Launcher:
        return self._context.launcher

    @property
    def cancelled(self) -> bool:
        return self._channel.closed or self._context.cancelled

    def output(self, stream: Stream, data: bytes) -> None:
        # Copied, because the caller may reuse its buffer before the loop reads it. A value that is not bytes fails
        # here, in the tool's own frame, and not later on the loop.
        data = bytes(memoryview(data))
        self._channel.post(self._context.output, stream, data, size=len(data))

    def processes_ended(self, children: Sequence[EndedChild]) -> None:
        self._channel.post(self._context.processes_ended, tuple(children))

    @property
    def chain(self) -> tuple[RunId, ...]:
        return self._context.chain

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Call another tool and wait for its outcome. Raises `ToolFailed` if the calling tool was cancelled meanwhile,
        because only an exception can stop the tool's thread."""

        async def outcome() -> Any:
            return await self._context.call(name, arguments, timeout=timeout)

        found = asyncio.run_coroutine_threadsafe(outcome(), self._channel.loop).result()
        if self.cancelled:
            raise ToolFailed(f"{self.run} was cancelled")
        return found

    def ask(self, *questions: Question) -> Any:
        """Ask, and wait for the answers. Raises `ToolFailed` if the tool was cancelled meanwhile."""

        async def answers() -> Any:
            return await self._context.ask(*questions)

        found = asyncio.run_coroutine_threadsafe(answers(), self._channel.loop).result()
        if self.cancelled:
            raise ToolFailed(f"{self.run} was cancelled")
        return found

    def can_ask(self, method: QuestionMethod = "elicitation/create") -> bool:
        return self._context.can_ask(method)

    def progress(self, message: str = "", *, fraction: float | None = None, **facts: Any) -> None:
        self._channel.post(self._context.progress, message, size=len(message), fraction=fraction, **facts)
