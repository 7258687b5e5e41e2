"""Describes tools that are new, for commands that open no service, and shows the progress on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from haft.surfaces.cli.globals import Globals
from haft.surfaces.cli.screen.progress import Progress

if TYPE_CHECKING:
    from haft.service import ListedTools


def describe_new_tools(tools: ListedTools, options: Globals) -> None:
    """Describe every new tool file, and show how many are done."""
    progress = Progress(quiet=options.quiet)

    def show_count(done: int, every: int) -> None:
        progress.passing(f"describing tools: {done} of {every}")

    try:
        tools.ask(show_count)
    finally:
        progress.clear()
