"""Keeps something open in a task of its own.

Libraries built on anyio want to be closed by the task that opened them: their task groups and cancel scopes belong to
it. A session is opened by its first call and closed by whoever ends it, which are two tasks. So a third one owns it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Owned(Generic[Value]):
    """An open context manager and the task that opened it."""

    def __init__(self, value: Value, task: asyncio.Task[None], wanted: asyncio.Event) -> None:
        self.value = value
        self._task = task
        self._wanted = wanted

    @classmethod
    async def open(
        cls,
        opening: contextlib.AbstractAsyncContextManager[Value],
        until: Callable[[Value], Awaitable[object]] | None = None,
    ) -> Owned[Value]:
        """Open it. It is closed by `close`, or when what `until` gives has come to its end."""
        opened: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        wanted = asyncio.Event()
        # A context of its own: whoever calls first is not who everything in it is done for.
        task = asyncio.create_task(_own(opening, opened, wanted, until), context=contextvars.Context())
        try:
            return cls(await asyncio.shield(opened), task, wanted)
        except BaseException:
            wanted.set()
            if not opened.done():
                task.cancel()
            await asyncio.wait([task])
            raise

    @property
    def is_closed(self) -> bool:
        return self._task.done()

    async def close(self) -> None:
        """Have its task close it, and wait for that. Raises what closing raised."""
        self._wanted.set()
        await asyncio.shield(self._task)


async def _own(
    opening: contextlib.AbstractAsyncContextManager[Value],
    opened: asyncio.Future[Value],
    wanted: asyncio.Event,
    until: Callable[[Value], Awaitable[object]] | None,
) -> None:
    try:
        async with opening as value:
            if not opened.done():
                opened.set_result(value)
            ends = [asyncio.ensure_future(wanted.wait())]
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
