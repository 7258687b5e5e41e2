"""Now: what waits for a person, the timeline of runs, and the list of runs."""

from __future__ import annotations

from typing import Final

from haft.surfaces.http.console.page import Page, PageRequest, View


async def show(asked: PageRequest) -> View:
    """The page of what happens now."""
    return View("now.html", "Now", {})


PAGES: Final = (Page("now", "/now", show),)
