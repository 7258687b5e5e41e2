"""Asking a toolbox executable what it is."""

from __future__ import annotations

from haft.contracts import Command, Launcher
from haft.sources import asking
from haft.sources.amp_toolbox.starting import ENVIRONMENT, own_places, started_as
from haft.sources.asking import DESCRIBE_SECONDS, Said


async def ask(
    path: str,
    launcher: Launcher,
    *,
    seconds: float = DESCRIBE_SECONDS,
    folder: str | None = None,
    is_workspaces: bool = False,
) -> Said:
    """Run it with TOOLBOX_ACTION=describe."""
    env = {"TOOLBOX_ACTION": "describe", **ENVIRONMENT}
    readable = tuple(own_places(path, folder, is_workspaces=is_workspaces))
    command = Command(started_as(path), env=env, readable=readable)
    return await asking.ask(command, launcher, seconds=seconds)
