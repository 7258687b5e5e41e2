"""Times, durations and amounts in words, the same on every page."""

from __future__ import annotations

import time
from typing import Final

KILO: Final = 1000


def clock(at: float) -> str:
    """The time of day. The browser's time zone is not known, so it is the server's."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def day(at: float) -> str:
    """The date, as in `3 October`; with the year if it is not this one."""
    then = time.localtime(at)
    words = f"{then.tm_mday} {time.strftime('%B', then)}"
    return words if then.tm_year == time.localtime().tm_year else f"{words} {then.tm_year}"


def when(at: float) -> str:
    """The time of day; for another day also the date."""
    then, today = time.localtime(at), time.localtime()
    is_today = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return clock(at) if is_today else f"{then.tm_mday} {time.strftime('%b', then)} {time.strftime('%H:%M', then)}"


def iso(at: float) -> str:
    """For the attribute `datetime`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def took(seconds: float) -> str:
    """A duration in a column."""
    if seconds < 0.0995:
        return f"{round(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{round(seconds)} s"
    return left(seconds)


def left(seconds: float) -> str:
    """A duration as a clock shows it: `5:06`, `1:04:10`."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def spoken(seconds: float) -> str:
    """A duration in a sentence."""
    if seconds < 1:
        return "less than a second"
    if seconds < 120:
        return counted(round(seconds), "second")
    if seconds < 7200:
        return counted(round(seconds / 60), "minute")
    return counted(round(seconds / 3600), "hour") if seconds < 172_800 else counted(round(seconds / 86_400), "day")


def size(count: int) -> str:
    """An amount of bytes."""
    if count < KILO:
        return counted(count, "byte")
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= KILO
        if amount < KILO or unit == "GB":
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    raise AssertionError


def sentence(text: str) -> str:
    """A text of haft as a sentence. Names of programs keep their small letter."""
    text = text.strip()
    start = text if text.startswith(("haft", "`")) else f"{text[:1].upper()}{text[1:]}"
    return start if not start or start.endswith((".", "!", "?")) else f"{start}."


def counted(count: int, thing: str, things: str | None = None) -> str:
    """A number of things: `1 file`, `2,140 files`."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


FILTERS: Final = {
    "clock": clock,
    "day": day,
    "when": when,
    "iso": iso,
    "took": took,
    "left": left,
    "spoken": spoken,
    "sentence": sentence,
    "size": size,
    "counted": counted,
}
