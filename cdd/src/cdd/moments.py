"""Moments and how they are written. All are UTC, because the files travel between machines."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """This moment, to the second, as the files have it."""
    return datetime.now(UTC).replace(microsecond=0)


def rfc3339(moment: datetime) -> str:
    """As `metadata.json` has it: 2026-03-01T09:30:00Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def from_rfc3339(text: object) -> datetime | None:
    """The moment that is written there, or None where none can be read."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def stamp(moment: datetime) -> str:
    """As an entry of the log begins: 2026-03-01 09:30:00."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def compact(moment: datetime) -> str:
    """As the folder of an archived track begins: 20260301093000."""
    return moment.strftime("%Y%m%d%H%M%S")


def between(start: datetime | None, end: datetime | None) -> str:
    """How long it took, in the two largest units; "an unknown time" where a moment is missing or the order is wrong."""
    if start is None or end is None or end < start:
        return "an unknown time"
    left = int((end - start).total_seconds())
    parts = []
    for unit, seconds in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts[:2]) or "0 seconds"
