"""Waiting for work to its end even if the waiting task is cancelled: in threads, and in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_uncancellable(work: Callable[[], Result], cancelled: Callable[[], None] = lambda: None) -> Result:
    """Run `work` in a thread and return its result. A cancellation does not stop it: `cancelled` is called at once, and
    the caller sees the cancellation by asking its task."""
    return await await_uncancellable(asyncio.to_thread(work), cancelled)


async def await_uncancellable(
    work: Coroutine[Any, Any, Result], cancelled: Callable[[], None] = lambda: None
) -> Result:
    """The same for a coroutine."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled()
        except Exception:  # noqa: S112  raised below
            continue
    return task.result()
