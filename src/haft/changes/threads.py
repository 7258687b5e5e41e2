"""Work in threads that the event loop waits for to its end, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def to_the_end(work: Callable[[], Result], cancelled: Callable[[], None] = lambda: None) -> Result:
    """What `work` gives, done in a thread. A cancellation does not call it off: `cancelled` hears of it at once, and
    whoever waits hears of it by asking its task."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            cancelled()
        except Exception:  # noqa: S112  raised below
            continue
    return doing.result()
