"""Asking tools that are new what they are, where no service is open; and saying so where it takes a moment."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from haft.contracts import Found
from haft.service import looking_launcher
from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.progress import Progress

if TYPE_CHECKING:
    from haft.registry import Catalogue
    from haft.service import Config
    from haft.storage import StateHome
    from haft.toolsets.discovery import Discovery


def ask_now(
    discovery: Discovery, catalogue: Catalogue, workspace: str, home: StateHome, config: Config | None, said: Globals
) -> None:
    """Ask every file that is new, and put the tools into the catalogue."""
    progress = Progress(quiet=said.quiet)

    def told(done: int, every: int) -> None:
        progress.passing(f"asking tools what they are: {done} of {every}")

    with looking_launcher(workspace, home, config) as launcher:
        try:
            asyncio.run(discovery.renew(catalogue, launcher, told))
        finally:
            progress.clear()


def ask_one(discovery: Discovery, path: str, workspace: str, home: StateHome) -> Found:
    """Ask one file what it is, wherever it lies."""
    with looking_launcher(workspace, home) as launcher:
        return asyncio.run(discovery.at(path, launcher))
