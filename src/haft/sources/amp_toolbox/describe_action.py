"""Runs a toolbox executable with the action `describe`."""

from __future__ import annotations

from haft.contracts import Command, Launcher
from haft.sources import brief_run
from haft.sources.amp_toolbox.start_command import ENVIRONMENT, readable_paths, start_argv
from haft.sources.brief_run import DESCRIBE_SECONDS, ProgramOutput


async def run_describe(
    path: str,
    launcher: Launcher,
    *,
    seconds: float = DESCRIBE_SECONDS,
    folder: str | None = None,
    from_workspace: bool = False,
) -> ProgramOutput:
    """Run an executable with TOOLBOX_ACTION=describe."""
    env = {"TOOLBOX_ACTION": "describe", **ENVIRONMENT}
    readable = tuple(readable_paths(path, folder, from_workspace=from_workspace))
    command = Command(start_argv(path), env=env, readable=readable)
    return await brief_run.run_briefly(command, launcher, seconds=seconds)
