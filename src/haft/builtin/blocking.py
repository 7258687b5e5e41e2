"""Runs blocking work in a thread, and always waits for the thread.

A thread cannot be stopped from outside. So a cancelled call waits until its thread has ended, and nothing is written
after the end of a run. Long loops check `context.cancelled` and end early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from haft.contracts import ToolFailed

Result = TypeVar("Result")

LONG_READ: Final = 1_000_000
"""Up to this many bytes, reading is faster without a thread than with one."""


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run `work` in a thread, and return its result. A cancellation waits for the thread, and is then raised."""
    import asyncio

    cancelled: asyncio.CancelledError | None = None

    def begin() -> Result:
        if cancelled is not None:  # The call was cancelled while it waited for a free thread: the work must not begin.
            raise ToolFailed("the call was cancelled before it began")
        return work()

    running = asyncio.ensure_future(asyncio.to_thread(begin))
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # Otherwise asyncio warns that nobody retrieved the exception.
        raise cancelled
    return running.result()
