"""Waiting until work in a thread or a coroutine has ended, even if the waiting task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_uncancellable(work: Callable[[], Result], cancelled: Callable[[], None] = lambda: None) -> Result:
    """Run `work` in a thread and return its result. If this task is cancelled, `work` goes on, `cancelled` is called at
    once, and no `CancelledError` is raised: the caller must find out in another way, such as `Task.cancelling`."""
    return await await_uncancellable(asyncio.to_thread(work), cancelled)


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
