"""Times and their text forms. All times are UTC, because the files move between machines."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current time, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def rfc3339(moment: datetime) -> str:
    """The time in the form of `metadata.json`: 2026-03-01T09:30:00Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def from_rfc3339(text: object) -> datetime | None:
    """The time that a text of `metadata.json` names; None if the text is not a valid time."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def stamp(moment: datetime) -> str:
    """The time in the form of a log entry: 2026-03-01 09:30:00."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def compact(moment: datetime) -> str:
    """The time in the form of the name of an archived track's folder: 20260301093000."""
    return moment.strftime("%Y%m%d%H%M%S")


def between(start: datetime | None, end: datetime | None) -> str:
    """The duration from start to end, in its two largest units; "an unknown time" if a time is missing or the order is
    wrong."""
    if start is None or end is None or end < start:
        return "an unknown time"
    left = int((end - start).total_seconds())
    parts = []
    for unit, seconds in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts[:2]) or "0 seconds"
