"""Times as people write and read them: `2h`, a date, an ISO time; and durations."""

from __future__ import annotations

import datetime
import re
import time
from typing import Final

from haft.contracts import BadUsage

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def since(text: str) -> float:
    """The time that `text` gives, in seconds since the epoch. A time without a zone is local. A span that began before
    the epoch begins there."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return max(0.0, time.time() - float(ago[1]) * _SECONDS[ago[2]])
    try:
        return datetime.datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise BadUsage(
            f"`{text}` is not a time", hint="write `30m`, `2h`, `1d`, a date like 2026-01-31, or 2026-01-31T14:00:00Z"
        ) from error


def duration(text: str) -> float:
    """The seconds of a span such as `30m` or `7d`."""
    span = _AGO.fullmatch(text.strip())
    if span is None or float(span[1]) == 0:
        raise BadUsage(f"`{text}` is not a duration", hint="write `30m`, `12h`, `7d` or `4w`")
    return float(span[1]) * _SECONDS[span[2]]


def clock(at: float) -> str:
    """A time in the local zone, to the second."""
    return datetime.datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def moment(at: float) -> str:
    """A short local time: for today only the time, for this year without the year, for other years only the date."""
    then, now = (datetime.datetime.fromtimestamp(each).astimezone() for each in (at, time.time()))
    if then.date() == now.date():
        return then.strftime("%H:%M:%S")
    return then.strftime("%m-%d %H:%M" if then.year == now.year else "%Y-%m-%d")


def lasted(seconds: float) -> str:
    """A duration in a suitable unit."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
