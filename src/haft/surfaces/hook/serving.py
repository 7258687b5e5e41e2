"""Puts the resident together and runs it: `haft hook --resident`. `start_cold.py` starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

from haft.service import HookConnection, HookKind, HookMessage, StateHome, default_home, start_spare
from haft.surfaces.hook.resident import Resident

if TYPE_CHECKING:
    from haft.surfaces.hook.workspaces import Workspaces

CLOSE_SECONDS: Final = 60.0
"""How often the resident looks for services that nobody needs."""


def serve_resident(ready: int | None = None) -> int:
    """Be the resident of the state home, until nobody needs it. `ready` is a socket that is closed when the resident
    listens: see `start_cold.py`."""
    return asyncio.run(_serve(ready))


async def _serve(ready: int | None) -> int:
    home = StateHome(default_home(os.environ))
    os.chdir("/")  # It must not keep the directory of the agent that started it.
    os.makedirs(home.path, mode=0o700, exist_ok=True)
    resident = Resident(home.path)
    listening = resident.take()
    needs_sandbox = _close_ready(ready)
    if listening is None:
        return 0
    if needs_sandbox and sys.platform == "linux":
        start_spare("zygote")  # The sandbox's helper starts while this process loads the rest.
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


def _close_ready(ready: int | None) -> bool:
    """Tell the hook that started this process that the resident listens. Returns whether the hook is about a shell
    command."""
    if ready is None:
        return False
    with contextlib.suppress(OSError), socket.socket(fileno=ready) as told:
        told.setblocking(False)
        return told.recv(1) == b"s"
    return False


async def _close_idle(workspaces: Workspaces) -> None:
    while True:
        await asyncio.sleep(CLOSE_SECONDS)
        await workspaces.close_idle()
