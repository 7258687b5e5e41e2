"""Work that would hold up the event loop, done in a thread that is always waited for.

A thread cannot be stopped from outside. So a cancelled call waits until its thread has come to an end: nothing is
written after a run is over. Long loops ask `context.cancelled` and end early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from haft.contracts import ToolFailed

Result = TypeVar("Result")

LONG_READ: Final = 1_000_000
"""Reading up to so many bytes is quicker than the way to a thread and back is worth."""


async def in_thread(work: Callable[[], Result]) -> Result:
    """The result of `work`, done in a thread. Cancelled, it still waits for the thread before it passes that on."""
    import asyncio

    cancelled: asyncio.CancelledError | None = None

    def begin() -> Result:
        if cancelled is not None:  # while it waited for a free thread: then it must not begin at all
            raise ToolFailed("the call was cancelled before it began")
        return work()

    running = asyncio.ensure_future(asyncio.to_thread(begin))
    while not running.done():
        try:
            await asyncio.wait((running,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # looked at, so that asyncio does not complain that nobody did
        raise cancelled
    return running.result()
