"""Asking tools that are new what they are, where no service is open; and saying so where it takes a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.progress import Progress

if TYPE_CHECKING:
    from haft.service import ListedTools


def ask_now(tools: ListedTools, said: Globals) -> None:
    """Ask every file that is new what it is, and show how far that has come."""
    progress = Progress(quiet=said.quiet)

    def told(done: int, every: int) -> None:
        progress.passing(f"asking tools what they are: {done} of {every}")

    try:
        tools.ask(told)
    finally:
        progress.clear()
