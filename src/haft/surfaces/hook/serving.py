"""Puts the resident together and runs it: `haft hook --resident`. `start_cold.py` starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Final

from haft.service import HookConnection, HookKind, HookMessage, StateHome, default_home
from haft.surfaces.hook.resident import Resident

if TYPE_CHECKING:
    from haft.surfaces.hook.workspaces import Workspaces

CLOSE_SECONDS: Final = 60.0
"""How often the resident looks for services that nobody needs."""


def serve_resident(ready: int | None = None) -> int:
    """Be the resident of the state home, until nobody needs it. `ready` is a descriptor that is closed when the
    resident listens."""
    return asyncio.run(_serve(ready))


async def _serve(ready: int | None) -> int:
    home = StateHome(default_home(os.environ))
    os.chdir("/")  # It must not keep the directory of the agent that started it.
    os.makedirs(home.path, mode=0o700, exist_ok=True)
    resident = Resident(home.path)
    listening = resident.take()
    if ready is not None:
        with contextlib.suppress(OSError):
            os.close(ready)
    if listening is None:
        return 0
    # Imported now, while the first hook sends its message.
    from haft.surfaces.hook.hook_calls import HookCalls
    from haft.surfaces.hook.line import write_launcher
    from haft.surfaces.hook.living_agents import LivingAgents
    from haft.surfaces.hook.workspaces import Workspaces

    write_launcher(home.path)
    workspaces, agents = Workspaces(home), LivingAgents(home)
    hooks = HookCalls(home, workspaces, agents)

    async def run_shell(connection: HookConnection, message: HookMessage) -> None:
        from haft.surfaces.hook.shell_calls import ShellCalls  # The first hook does not wait for this import.

        await ShellCalls(home, workspaces, hooks.redeemed).handle(connection, message)

    closing = asyncio.create_task(_close_idle(workspaces))
    try:
        await resident.serve(
            listening,
            {HookKind.HOOK: hooks.handle, HookKind.SHELL: run_shell},
            is_busy=lambda: workspaces.is_busy or agents.has_any,
        )
    finally:
        closing.cancel()
        agents.close()
        await workspaces.close()
    return 0


async def _close_idle(workspaces: Workspaces) -> None:
    while True:
        await asyncio.sleep(CLOSE_SECONDS)
        await workspaces.close_idle()
