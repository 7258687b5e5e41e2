"""Now: what waits for a person, the timeline of runs, and the newest runs."""

from __future__ import annotations

import time
from typing import Final

from haft.surfaces.http.console import reading
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.timeline import RANGES, span_of, timeline
from haft.surfaces.http.console.waits import wait_of

USUAL_RANGE: Final = "15m"
MOST_DRAWN: Final = 2000
"""How many runs the timeline shows at most: the newest."""
LONG: Final = 900
"""For how many seconds before the time that is shown runs are looked at, because they may have ended in it."""
MOST_LANES: Final = 14
ALL_LANES: Final = 1000
LISTED: Final = 12
"""How many runs are listed below the timeline."""


async def show(asked: PageRequest) -> View:
    """The page of what happens now."""
    ask, now = asked.ask, time.time()
    chosen = asked.query.get("range", USUAL_RANGE)
    chosen = chosen if chosen in RANGES else USUAL_RANGE
    waiting = await reading.requests(ask)
    since = now - span_of(chosen, now)
    found = await reading.runs(ask, MOST_DRAWN, since=since - LONG)
    found = [run for run in found if (run.ended or now) >= since]
    known = {run.id for run in found}
    # What began before the time that is shown, and still goes on, is shown too.
    found += [run for run in await reading.runs(ask, 200, open=True) if run.id not in known]
    listed = sorted(found, key=lambda run: run.id, reverse=True)[:LISTED]
    if len(listed) < LISTED:
        listed = await reading.runs(ask, LISTED)
    facts = {
        "now": now,
        "waits": [wait_of(each, reading.request_facts(each)) for each in waiting],
        "timeline": timeline(
            found,
            {each.run: each.id for each in waiting},
            now=now,
            chosen=chosen,
            base=asked.address(),
            most_lanes=ALL_LANES if "lanes" in asked.query else MOST_LANES,
        ),
        "runs": listed,
        "counts": await reading.line_counts(ask, listed),
        "working": len({run.thread for run in found if run.kind == "running"}),
        "base": asked.address(),
    }
    return View("now.html", "Now", facts)


PAGES: Final = (Page("now", "/now", show),)
