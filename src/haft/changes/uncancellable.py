"""Waiting until work in a thread or a coroutine has ended, even if the waiting task is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_uncancellable(work: Callable[[], Result], cancelled: Callable[[], None] = lambda: None) -> Result:
    """Run `work` in a thread and return its result. If this task is cancelled, `work` goes on, `cancelled` is called at
    once, and no `CancelledError` is raised: the caller must find out in another way, such as `Task.cancelling`."""
    return await await_uncancellable(_in_own_thread(work), cancelled)


async def _in_own_thread(work: Callable[[], Result]) -> Result:
    """Run `work` in a thread of its own. The threads of the event loop's executor are few: if all of them waited for a
    lock, none would be left for the work of the call that holds it."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    ended: asyncio.Future[Result] = loop.create_future()

    def end(settle: Callable[[Any], None], value: Any) -> None:
        if not ended.done():
            settle(value)

    def run() -> None:
        settle: Callable[[Any], None] = ended.set_result
        try:
            value: Any = context.run(work)
        except BaseException as error:  # It is raised where the result is awaited.
            settle, value = ended.set_exception, error
        with contextlib.suppress(RuntimeError):  # The event loop is closed.
            loop.call_soon_threadsafe(end, settle, value)

    threading.Thread(target=run, name="haft-changes").start()
    return await ended


async def await_uncancellable(
    work: Coroutine[Any, Any, Result], cancelled: Callable[[], None] = lambda: None
) -> Result:
    """Run a coroutine to its end and return its result. Cancellations have the same effect as in
    `run_uncancellable`."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled()
        except Exception:  # noqa: S112  raised below
            continue
    return task.result()
