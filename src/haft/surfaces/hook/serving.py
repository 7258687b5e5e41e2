"""Puts the resident together and runs it: `haft hook --resident`. `start_cold.py` starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os

from haft.service import default_home
from haft.surfaces.hook.resident import Resident


def serve_resident(ready: int | None = None) -> int:
    """Be the resident of the state home, until nobody needs it. `ready` is a descriptor that is closed when the
    resident listens."""
    return asyncio.run(_serve(ready))


async def _serve(ready: int | None) -> int:
    home = default_home(os.environ)
    os.makedirs(home, mode=0o700, exist_ok=True)
    os.chdir("/")  # It must not keep the directory of the agent that started it.
    resident = Resident(home, {})
    listening = resident.take()
    if ready is not None:
        with contextlib.suppress(OSError):
            os.close(ready)
    if listening is None:
        return 0
    await resident.serve(listening)
    return 0
