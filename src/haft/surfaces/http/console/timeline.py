"""The timeline: runs as bars, in lanes by thread. Positions are percentages of the width, and rows are pixels, so that
the picture fits every window without moving a bar off its row.

A lane has as many rows as calls that ran at the same time. Calls that are too short to be seen one by one, and that
follow each other, share a bar: it says how many they are. The calls of a sub-agent have a lane of their own, below that
of their thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from haft.surfaces.http.console.call_words import short_id
from haft.surfaces.http.console.figures import clock, counted, took
from haft.surfaces.http.console.run_facts import SAID, Kind, RunFacts
from haft.values import dataclass, field

RANGES: Final[Mapping[str, tuple[str, str, float]]] = {
    "5m": ("5 min", "Last 5 minutes", 300),
    "15m": ("15 min", "Last 15 minutes", 900),
    "1h": ("1 h", "Last hour", 3600),
    "day": ("Today", "Today", 0),
}
"""For each range: its button, its title, and its length in seconds."""
NOW: Final = 96.77
"""Where now is, in percent of the width."""
ROW: Final = 22
"""The height of a row in pixels."""
MOST_ROWS: Final = 6
"""How many rows a lane has at most. Further calls at the same time share the bars of the last row."""
LEAST_HEIGHT: Final = 58
"""The height of a lane in pixels, so that its two lines of text fit."""
LEAST: Final[Mapping[Kind, float]] = {"read": 0.42}
LEAST_WIDTH: Final = 0.6
"""The width of the shortest bar in percent: about six pixels, which can be seen and hit."""
GAP: Final = 0.12
MOST_SHIFT: Final = 1.0
"""How far a bar may be moved to the right so that calls that followed each other do not look parallel."""
TEN_PIXELS: Final = 1.3
"""Ten pixels in percent of a narrow plot: labels that do not fit are left out."""
SHARED: Final[frozenset[Kind]] = frozenset({"read", "done", "changed", "undone", "rejected", "cancelled"})
"""The kinds whose short bars can be shared. What waits, runs or failed always has a bar of its own."""
STRENGTH: Final[tuple[Kind, ...]] = ("read", "cancelled", "rejected", "done", "undone", "changed")
"""Of several runs in one bar, the last of these kinds gives the bar its look."""
STEPS: Final = (30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 10800, 14400)


@dataclass(slots=True)
class Bar:
    """One bar: a run, or several short ones."""

    runs: list[RunFacts]
    kind: Kind
    x: float
    width: float
    row: int = 0
    waited_from: float | None = None
    """Where the dotted line of its waiting begins."""

    @property
    def end(self) -> float:
        return self.x + self.width

    @property
    def start(self) -> float:
        """Where the bar begins, or the dotted line before it."""
        return self.x if self.waited_from is None else self.waited_from

    @property
    def y(self) -> int:
        return 10 + ROW * self.row


@dataclass(slots=True)
class Drawn:
    """A bar as the template draws it."""

    key: str
    """The first of its runs: a live page finds the bar again by it."""
    address: str
    name: str
    kind: Kind
    x: str
    width: str
    end: str
    y: int
    label: str = ""
    label_width: float = 0
    waited_from: str | None = None
    count: int = 1


@dataclass(slots=True)
class Lane:
    """The runs of a thread, or of a sub-agent."""

    title: str
    detail: str
    address: str
    bars: list[Drawn]
    height: int
    is_child: bool = False
    key: str = ""


@dataclass(slots=True)
class Timeline:
    """The whole picture."""

    title: str
    summary: str
    ticks: list[tuple[str, str, bool]]
    """Position, time, and whether a narrow window leaves it out."""
    now: str
    lanes: list[Lane]
    more: int
    """How many further lanes are not drawn."""
    chosen: str
    ranges: list[tuple[str, str]] = field(default_factory=lambda: [(name, each[0]) for name, each in RANGES.items()])


def span_of(chosen: str, now: float) -> float:
    """How many seconds a range shows."""
    if chosen == "day":
        then = time.localtime(now)
        midnight = time.mktime((then.tm_year, then.tm_mon, then.tm_mday, 0, 0, 0, 0, 0, -1))
        return max(3600.0, now - midnight)
    return RANGES[chosen][2]


def timeline(
    runs: Sequence[RunFacts], requests: Mapping[str, str], *, now: float, chosen: str, base: str, most_lanes: int
) -> Timeline:
    """The timeline of these runs. `requests` has the request that each waiting run waits for, `base` is the address of
    the workspace's pages."""
    span = span_of(chosen, now)
    drawing = _Drawing(now, span, base, requests)
    lanes = drawing.lanes(runs)
    changed = {path for run in runs if run.kind == "changed" for path in run.paths}
    threads = len({run.thread for run in runs})
    words = [counted(threads, "thread"), counted(len(runs), "run"), counted(len(changed), "changed file")]
    return Timeline(
        RANGES[chosen][1],
        " · ".join(words),
        _ticks(now, span, drawing),
        f"{NOW:.2f}%",
        lanes[:most_lanes],
        max(0, len(lanes) - most_lanes),
        chosen,
    )


def _ticks(now: float, span: float, drawing: _Drawing) -> list[tuple[str, str, bool]]:
    step = next((each for each in STEPS if span / each <= 5.5), STEPS[-1])
    offset = time.localtime(now).tm_gmtoff or 0
    first = math.ceil((now - span + offset) / step) * step - offset
    found = []
    for number in range(16):
        at = first + number * step
        x = drawing.x(at)
        if x > NOW - 5:
            break
        if x >= 2:
            is_left_out = number % 2 == 1 or x > NOW - 14
            found.append((f"{x:.2f}%", clock(at)[:5] if step >= 60 else clock(at), is_left_out))
    return found


class _Drawing:
    """Places runs on the picture."""

    def __init__(self, now: float, span: float, base: str, requests: Mapping[str, str]) -> None:
        self.now, self.span, self.base, self.requests = now, span, base, requests

    def x(self, at: float) -> float:
        return max(0.0, NOW * (1 - (self.now - at) / self.span))

    def lanes(self, runs: Sequence[RunFacts]) -> list[Lane]:
        """The lanes; those first in which something waits or runs, then those in which something happened last."""
        tasks = {run.id: run for run in runs if run.tool == "task"}
        groups: dict[tuple[str, str | None], list[RunFacts]] = {}
        for run in sorted(runs, key=lambda run: run.began):
            groups.setdefault((run.thread, run.parent if run.parent in tasks else None), []).append(run)

        def rank(thread: str) -> tuple[bool, float]:
            of_thread = [run for (name, _), found in groups.items() if name == thread for run in found]
            # Lanes with open runs stay in one order: a live page must not change it with each event.
            is_open = any(run.is_open for run in of_thread)
            return not is_open, of_thread[0].began if is_open else -max(run.ended or self.now for run in of_thread)

        lanes = []
        for thread in sorted(dict.fromkeys(thread for thread, _ in groups), key=rank):
            own = groups.get((thread, None), [])
            children = [(tasks[parent], found) for (name, parent), found in groups.items() if name == thread and parent]
            if own:
                lanes.append(self._lane(thread, own))
            lanes += [self._child_lane(task, found) for task, found in children]
        return lanes

    def _lane(self, thread: str, runs: list[RunFacts]) -> Lane:
        who = ", ".join(dict.fromkeys(run.who for run in runs))
        address = f"{self.base}runs?{urlencode({'thread': thread})}"
        is_named = not thread.startswith("T-")
        title = thread if is_named else who
        detail = (
            f"{who} · {counted(len(runs), 'run')}" if is_named else f"{short_id(thread)} · {counted(len(runs), 'run')}"
        )
        bars = self._packed(runs)
        return Lane(title, detail, address, self._drawn(bars), _height(bars), key=f"lane-{thread}")

    def _child_lane(self, task: RunFacts, runs: list[RunFacts]) -> Lane:
        bars = self._packed(runs)
        detail = f"sub-agent · {short_id(task.thread)}"
        return Lane(
            f"task: {task.subject}", detail, f"{self.base}runs/{task.id}", self._drawn(bars), _height(bars),
            is_child=True, key=f"lane-{task.id}",
        )  # fmt: skip

    def _packed(self, runs: Iterable[RunFacts]) -> list[Bar]:
        """The bars, each on the first row that is free at its time."""
        rows: list[list[Bar]] = []
        for run in runs:
            bar = self._bar(run)
            for number, row in enumerate(rows):
                last = row[-1]
                if bar.start >= last.end + GAP:
                    row.append(bar)
                elif self._follows(last, run) and _can_shift(bar, last.end + GAP):
                    bar.x = last.end + GAP
                    row.append(bar)
                elif self._can_share(last, run):
                    self._share(last, run)
                else:
                    continue
                bar.row = number
                break
            else:
                if len(rows) < MOST_ROWS:
                    bar.row = len(rows)
                    rows.append([bar])
                elif (room := self._roomiest(rows, run)) is not None:
                    self._share(room, run)
                else:
                    bar.row = MOST_ROWS - 1
                    rows[-1].append(bar)
        return [bar for row in rows for bar in row]

    def _bar(self, run: RunFacts) -> Bar:
        started, waited_from = run.began, None
        if run.waited is not None and run.kind != "waiting":
            waited_from = self.x(run.waited[0])
            started = run.started_work
        x = self.x(started)
        end = NOW if run.is_open else self.x(run.ended or self.now)
        least = LEAST.get(run.kind, LEAST_WIDTH)
        width = max(least, end - x)
        x = min(x, NOW - width)
        if waited_from is not None and x - waited_from < 0.4:
            waited_from = None
        return Bar([run], run.kind, x, width, waited_from=waited_from)

    def _follows(self, last: Bar, run: RunFacts) -> bool:
        """Whether a run began after those of a bar had ended, although their bars lie on each other: the shortest bar
        is wider than a short call."""
        before = last.runs[-1]
        return before.ended is not None and run.started_work >= before.ended and not run.is_open

    def _can_share(self, last: Bar, run: RunFacts) -> bool:
        """Whether a run can share the bar of those before it."""
        return self._is_short(run) and self._is_short(last.runs[-1]) and self._follows(last, run)

    def _is_short(self, run: RunFacts) -> bool:
        return run.kind in SHARED and run.lasted(self.now) / self.span * NOW < LEAST_WIDTH

    def _roomiest(self, rows: list[list[Bar]], run: RunFacts) -> Bar | None:
        """A bar of the last row that this run can share although it ran at the same time."""
        last = rows[-1][-1]
        return last if run.kind in SHARED and all(each.kind in SHARED for each in last.runs) else None

    def _share(self, bar: Bar, run: RunFacts) -> None:
        bar.runs.append(run)
        bar.kind = max((each.kind for each in bar.runs), key=STRENGTH.index)
        end = self.x(run.ended or self.now)
        bar.width = max(bar.width, LEAST.get(bar.kind, LEAST_WIDTH), end - bar.x)

    def _drawn(self, bars: list[Bar]) -> list[Drawn]:
        """The bars in the order of time, which is that of the arrow keys."""
        return [self._one(bar) for bar in sorted(bars, key=lambda bar: (bar.x, bar.row))]

    def _one(self, bar: Bar) -> Drawn:
        run = bar.runs[0]
        drawn = Drawn(
            run.id,
            self._address(bar),
            run.sentence(self.now, clock, took) if len(bar.runs) == 1 else _many(bar.runs),
            bar.kind,
            f"{bar.x:.2f}%",
            f"{bar.width:.2f}%",
            f"{bar.end:.2f}%",
            bar.y,
            waited_from=None if bar.waited_from is None else f"{bar.waited_from:.2f}%",
            count=len(bar.runs),
        )
        pixels = bar.width / TEN_PIXELS * 10
        drawn.label, drawn.label_width = _label(bar, pixels)
        return drawn

    def _address(self, bar: Bar) -> str:
        run = bar.runs[0]
        if len(bar.runs) > 1:
            times = {"since": f"{run.began:.3f}", "until": f"{max(each.began for each in bar.runs):.3f}"}
            return f"{self.base}runs?{urlencode({'thread': run.thread, **times})}"
        if run.kind == "waiting" and run.id in self.requests:
            return f"{self.base}approve/{self.requests[run.id]}"
        return f"{self.base}runs/{run.id}"


def _can_shift(bar: Bar, x: float) -> bool:
    """Whether a bar can begin here instead of where its run began: not far away, and not in the future."""
    return bar.waited_from is None and x - bar.x <= MOST_SHIFT and x + bar.width <= NOW


def _height(bars: Sequence[Bar]) -> int:
    return max(LEAST_HEIGHT, 14 + ROW * (1 + max((bar.row for bar in bars), default=0)))


def _many(runs: Sequence[RunFacts]) -> str:
    """Several runs in a sentence."""
    kinds: dict[Kind, int] = {}
    for run in runs:
        kinds[run.kind] = kinds.get(run.kind, 0) + 1
    words = ", ".join(f"{count:,} {SAID[kind].removeprefix('done, ')}" for kind, count in kinds.items())
    return f"{counted(len(runs), 'run')}: {words}, from {clock(runs[0].began)} to {clock(runs[-1].began)}"


def _label(bar: Bar, pixels: float) -> tuple[str, float]:
    """The text on a bar and its width in pixels; nothing if it does not fit."""
    run = bar.runs[0]
    if len(bar.runs) > 1:
        text = f"{len(bar.runs):,}"
    elif bar.kind in ("read", "error", "rejected", "undone", "cancelled"):
        return "", 0
    else:
        text = _name_of(run)
    room = pixels - (30 if bar.kind == "waiting" else 12)
    while text and 6.3 * len(text) > room:
        text = text.rpartition(" ")[0]
    return text, 6.3 * len(text) + 24


def _name_of(run: RunFacts) -> str:
    """What a bar says: the program of a command, else the tool."""
    words = " ".join(run.subject.split())[:60]
    if run.tool == "shell":
        return words.removeprefix("npx ").removeprefix("sudo ") or run.tool
    return f"task: {words}" if run.tool == "task" else f"{run.tool} {words}"
