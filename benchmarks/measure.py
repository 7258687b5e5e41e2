"""Measuring two things in turns, so that a disturbance affects both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    haft: float
    """Seconds."""
    peer: str
    floor: float
    bar: float | None = None
    """The highest ratio that is promised; None if nothing is promised."""

    @property
    def ratio(self) -> float:
        return self.haft / self.floor

    @property
    def kept(self) -> bool:
        return self.bar is None or self.ratio <= self.bar


async def in_turns(
    ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]], *, times: int, rounds: int = 15
) -> tuple[float, float]:
    """Seconds for one call of each, as the median of the rounds."""
    for _ in range(min(times, 50)):
        await ours()
        await theirs()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for place, work in zip(taken, (ours, theirs), strict=True):
            start = time.perf_counter()
            for _ in range(times):
                await work()
            place.append((time.perf_counter() - start) / times)
    return statistics.median(taken[0]), statistics.median(taken[1])


def in_turns_blocking(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int,
    between: Callable[[], object] = lambda: None,
) -> tuple[float, float]:
    """The same for blocking functions; one call in each round. `between` is called after each call of `ours`, and does
    not count."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 2):
        for place, work in zip(taken, (ours, theirs), strict=True):
            start = time.perf_counter()
            work()
            if number > 1:  # The first two rounds warm up.
                place.append(time.perf_counter() - start)
            if work is ours:
                between()
    return statistics.median(taken[0]), statistics.median(taken[1])


def shown(seconds: float) -> str:
    """A duration for people."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def print_table(rows: list[Row]) -> None:
    """Print one line for each measurement."""
    print(f"{'what':<38} {'haft':>9}   {'against':<28} {'takes':>9} {'ratio':>7}  promised")
    for row in rows:
        promise = "" if row.bar is None else f"≤ {row.bar:g} {'kept' if row.kept else 'NOT KEPT'}"
        print(
            f"{row.what:<38} {shown(row.haft):>9}   {row.peer:<28} {shown(row.floor):>9} {row.ratio:>6.2f}×  {promise}"
        )
