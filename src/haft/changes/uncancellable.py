"""Work that is waited for to its end, whoever is cancelled meanwhile: in threads, and in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_uncancellable(work: Callable[[], Result], cancelled: Callable[[], None] = lambda: None) -> Result:
    """What `work` gives, done in a thread. A cancellation does not call it off: `cancelled` hears of it at once, and
    whoever waits hears of it by asking its task."""
    return await await_uncancellable(asyncio.to_thread(work), cancelled)


async def await_uncancellable(
    work: Coroutine[Any, Any, Result], cancelled: Callable[[], None] = lambda: None
) -> Result:
    """The same for what the event loop does."""
    doing = asyncio.ensure_future(work)
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            cancelled()
        except Exception:  # noqa: S112  raised below
            continue
    return doing.result()
