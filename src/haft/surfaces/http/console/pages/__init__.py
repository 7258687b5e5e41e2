"""The pages of the console, a module for each entry of the top bar. Each module has `PAGES`."""

from __future__ import annotations

from typing import Final

from haft.surfaces.http.console.page import Page
from haft.surfaces.http.console.pages import approve, audit, compare, files, machine, now, rules, run, runs, tools

PAGES: Final[tuple[Page, ...]] = (
    *now.PAGES,
    *approve.PAGES,
    *runs.PAGES,
    *run.PAGES,
    *compare.PAGES,
    *files.PAGES,
    *tools.PAGES,
    *rules.PAGES,
    *audit.PAGES,
    *machine.PAGES,
)
"""All pages. Of two paths that both fit, the first counts."""
