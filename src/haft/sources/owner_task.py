"""Keeps a context manager open in a task of its own.

Libraries built on anyio must be closed by the task that opened them: their task groups and cancel scopes belong to that
task. In haft, the task of the first call wants to open a session, and another task wants to close it. So a third task,
the owner, both opens and closes the session.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from haft.lazy import late_module

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = late_module("asyncio")

Value = TypeVar("Value")


class OwnerTask(Generic[Value]):
    """An open context manager, and the task that opened it and will close it."""

    def __init__(self, value: Value, task: asyncio.Task[None], close_requested: asyncio.Event) -> None:
        self.value = value
        self._task = task
        self._close_requested = close_requested

    @classmethod
    async def open(
        cls,
        manager: contextlib.AbstractAsyncContextManager[Value],
        until: Callable[[Value], Awaitable[object]] | None = None,
    ) -> OwnerTask[Value]:
        """Open the manager in a new task. The manager is closed by `close`, or when the awaitable that `until` returns
        is done."""
        opened: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        close_requested = asyncio.Event()
        # With an empty context, because context variables of the first caller must not apply to all later calls.
        task = asyncio.create_task(_own(manager, opened, close_requested, until), context=contextvars.Context())
        try:
            return cls(await asyncio.shield(opened), task, close_requested)
        except BaseException:
            close_requested.set()
            if not opened.done():
                task.cancel()
            await asyncio.wait([task])
            if opened.done():
                _ = opened.cancelled() or opened.exception()  # Otherwise asyncio would report it as never retrieved.
            raise

    @property
    def is_closed(self) -> bool:
        return self._task.done()

    async def close(self) -> None:
        """Let the owner task close the manager, and wait until the manager is closed. Raises the exception that closing
        raised."""
        self._close_requested.set()
        await asyncio.shield(self._task)


async def _own(
    manager: contextlib.AbstractAsyncContextManager[Value],
    opened: asyncio.Future[Value],
    close_requested: asyncio.Event,
    until: Callable[[Value], Awaitable[object]] | None,
) -> None:
    try:
        async with manager as value:
            if not opened.done():
                opened.set_result(value)
            ends = [asyncio.ensure_future(close_requested.wait())]
            if until is not None:
                ends.append(asyncio.ensure_future(until(value)))  # type: ignore[arg-type]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()
                await asyncio.gather(*ends, return_exceptions=True)
    except BaseException as error:
        if opened.done():
            raise
        opened.set_exception(error)
