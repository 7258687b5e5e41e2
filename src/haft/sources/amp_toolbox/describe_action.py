"""Asking a toolbox executable what it is."""

from __future__ import annotations

from haft.contracts import Command, Launcher
from haft.sources import brief_run
from haft.sources.amp_toolbox.start_command import ENVIRONMENT, own_places, started_as
from haft.sources.brief_run import DESCRIBE_SECONDS, ProgramOutput


async def run_describe(
    path: str,
    launcher: Launcher,
    *,
    seconds: float = DESCRIBE_SECONDS,
    folder: str | None = None,
    is_workspaces: bool = False,
) -> ProgramOutput:
    """Run it with TOOLBOX_ACTION=describe."""
    env = {"TOOLBOX_ACTION": "describe", **ENVIRONMENT}
    readable = tuple(own_places(path, folder, is_workspaces=is_workspaces))
    command = Command(started_as(path), env=env, readable=readable)
    return await brief_run.run_briefly(command, launcher, seconds=seconds)
