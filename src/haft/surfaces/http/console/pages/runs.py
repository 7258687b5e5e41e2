"""Runs: the list of all runs, with a filter that is the address."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from haft.surfaces.http.console import reading
from haft.surfaces.http.console.page import Page, PageRequest, View
from haft.surfaces.http.console.run_facts import RunFacts
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.surfaces.http.api.ask import Ask

LISTED: Final = 50
MOST_LOOKED_AT: Final = 4000
"""How many runs are looked at for one page. The next page goes on where this one ended."""
STATES: Final = {
    "running": ("Running", frozenset({"running", "queued"})),
    "changed": ("Changed files", frozenset({"changed", "undone", "held"})),
    "error": ("Errors", frozenset({"error"})),
    "rejected": ("Rejected", frozenset({"rejected"})),
    "undone": ("Undone", frozenset({"undone"})),
    "waiting": ("Waits", frozenset({"waiting"})),
    "held": ("Held", frozenset({"held"})),
}
RARE: Final = frozenset({"waiting", "held"})
"""The states that have no button, unless they are chosen."""
FIELDS: Final = (
    ("tool", "Tool", "shell"),
    ("who", "Person or agent", "codex"),
    ("thread", "Thread", "T-…"),
    ("path", "Changed path", "src/cart/total.ts"),
    ("since", "Since", "2h, 3d, 2026-11-19"),
    ("until", "Until", "30m, 2026-11-19 14:00"),
    ("longer", "Longer than", "10s, 2m"),
    ("shorter", "Shorter than", "1s"),
    ("text", "Text in arguments or output", "AssertionError"),
)
"""The fields of the filter beside the words: a name, a label, and an example."""
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DATES: Final = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%H:%M")


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What the address says about which runs are wanted."""

    words: tuple[str, ...]
    state: str | None
    shorter: float | None
    wanted: Mapping[str, Any]
    """The parameters of `listRuns`."""
    wrong: tuple[str, ...] = ()
    """The fields that cannot be understood."""

    def fits(self, run: RunFacts, now: float) -> bool:
        """Whether a run fits the parts that `listRuns` does not know."""
        if self.state is not None and run.kind not in STATES[self.state][1]:
            return False
        if self.shorter is not None and run.lasted(now) >= self.shorter:
            return False
        if not self.words:
            return True
        texts = (run.tool, run.subject, run.who, run.thread, run.id, run.word, *run.paths, str(run.whole["arguments"]))
        text = "\n".join(texts).lower()
        return all(word in text for word in self.words)


async def show(asked: PageRequest) -> View:
    """The list of runs."""
    ask, now = asked.ask, time.time()
    wanted = filter_of(asked.query, now)
    found, more, looked = await _page(ask, wanted, asked.query.get("before"), now)
    given = {name: asked.query.get(name, "") for name, _, _ in FIELDS}
    facts = {
        "now": now,
        "runs": found,
        "counts": await reading.line_counts(ask, found),
        "q": asked.query.get("q", ""),
        "state": wanted.state,
        "states": {name: each[0] for name, each in STATES.items() if name not in RARE or name == wanted.state},
        "fields": FIELDS,
        "given": given,
        "wrong": wanted.wrong,
        "has_more_fields": any(given.values()),
        "query": {key: value for key, value in asked.query.items() if value and key != "before"},
        "next": more,
        "looked": looked,
        "is_later": "before" in asked.query,
        "base": asked.address(),
    }
    return View("runs.html", "Runs", facts)


async def _page(ask: Ask, wanted: RunFilter, before: str | None, now: float) -> tuple[list[RunFacts], str | None, int]:
    """The runs of this page, the cursor of the next one, and how many runs were looked at."""
    found: list[RunFacts] = []
    looked, last = 0, None
    async for page in reading.run_pages(ask, reading.PAGE if wanted.words or wanted.state else LISTED + 1,
                                        **wanted.wanted, cursor=before):  # fmt: skip
        for run in page:
            if len(found) == LISTED:
                return found, last, looked
            looked, last = looked + 1, run.id
            if wanted.fits(run, now):
                found.append(run)
        if looked >= MOST_LOOKED_AT:
            return found, last, looked
    return found, None, looked


def filter_of(query: Mapping[str, str], now: float) -> RunFilter:
    """The filter that an address says. What cannot be understood is left out, and named."""
    wanted: dict[str, Any] = {}
    wrong = []
    for name in ("tool", "who", "thread", "path", "text"):
        if value := query.get(name, "").strip():
            wanted[name] = value
    for name in ("since", "until"):
        if value := query.get(name, "").strip():
            at = _time(value, now)
            if at is None:
                wrong.append(name)
            else:
                wanted[name] = at
    durations = {}
    for name in ("longer", "shorter"):
        if value := query.get(name, "").strip():
            durations[name] = _duration(value)
            if durations[name] is None:
                wrong.append(name)
    if durations.get("longer") is not None:
        wanted["longer_than"] = durations["longer"]
    state = query.get("state")
    words = tuple(query.get("q", "").lower().split()[:10])
    return RunFilter(words, state if state in STATES else None, durations.get("shorter"), wanted, tuple(wrong))


def _duration(text: str) -> float | None:
    found = _AMOUNT.fullmatch(text)
    return None if found is None else float(found[1]) * _SECONDS[found[2] or "s"]


def _time(text: str, now: float) -> float | None:
    """A time: so long ago, a date in the server's time zone, or seconds since 1970."""
    found = _AMOUNT.fullmatch(text)
    if found is not None and (found[2] or float(found[1]) > 1e8):
        return now - float(found[1]) * _SECONDS[found[2]] if found[2] else float(found[1])
    for form in _DATES:
        try:
            then = time.strptime(text, form)
        except ValueError:
            continue
        if form == "%H:%M":
            today = time.localtime(now)
            then = time.struct_time((*today[:3], *then[3:5], 0, *today[6:8], -1))
        return time.mktime(then)
    return None


PAGES: Final = (Page("runs", "/runs", show),)
