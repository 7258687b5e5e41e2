"""Placeholders for what differs from run to run.

If an expected text contains `<workspace>` or `<run>`, the same things are replaced by these words in the actual text
before both are compared. `<time>` stands for one time at its place; other times in the text are compared as they are.
Without a placeholder nothing is replaced, so that no difference is hidden.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, Final

_RUN: Final = re.compile(r"\br_[0-9A-Za-z]{10,}\b")
_CLOCK: Final = r"[0-2]\d:[0-5]\d:[0-6]\d(?:[.,]\d+)?"
_DAY: Final = r"\d{4}-\d\d-\d\d"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_YEAR: Final = r"(?: \d{4}\b)"
_NOON: Final = r"(?: [AP]M)"
_ZONE: Final = r"(?: (?:[A-Z]{2,5}\b|[+-]\d\d(?:\d\d)?\b))"
_FORMS: Final = (
    # 2026-01-31, 2026-01-31T10:52:30.5Z, 2026-01-31 10:52 +0100
    rf"\b{_DAY}(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|UTC\b|[+-]\d\d:?\d\d\b))?)?",
    # Sat Jan 31 10:52:30 UTC 2026, Sat 31 Jan 2026 10:52:30 AM CET, Sat, 31 Jan 2026 10:52:30 +0100
    rf"\b{_WEEKDAY},? (?:{_MONTH} [ \d]?\d|[ \d]?\d {_MONTH}){_YEAR}? {_CLOCK}{_NOON}?{_ZONE}?{_YEAR}?{_ZONE}?",
    # 10:52:30
    rf"(?<![\w:.]){_CLOCK}(?![\w:])",
)
_TIME: Final = re.compile("|".join(_FORMS))


def masked_like(expected: str, actual: str, workspace: str) -> str:
    """The actual text with those placeholders that the expected text has."""
    if "<workspace>" in expected:
        actual = actual.replace(workspace, "<workspace>")
    if "<run>" in expected:
        actual = _RUN.sub("<run>", actual)
    if "<time>" in expected:
        actual = _with_times_like(expected, actual)
    return actual


def _with_times_like(expected: str, actual: str) -> str:
    """The actual text with `<time>` where the expected text has it; if the rest differs, in place of each time."""
    pattern = re.compile(f"(?:{_TIME.pattern})".join(map(re.escape, expected.split("<time>"))))
    found = pattern.fullmatch(actual) or pattern.search(actual)
    return without_times(actual) if found is None else actual[: found.start()] + expected + actual[found.end() :]


def without_times(text: str) -> str:
    """A text with `<time>` in place of each time."""
    return _TIME.sub("<time>", text)


def without_changing_times(text: str, others: Sequence[str]) -> str | None:
    """The text with `<time>` in place of those times that are different in one of the other texts; None if something
    else differs."""
    if any(without_times(other) != without_times(text) for other in others):
        return None
    every = [[found[0] for found in _TIME.finditer(each)] for each in (text, *others)]
    if len({len(each) for each in every}) > 1:  # In one of the texts, some are masked already.
        return without_times(text)
    changing = iter([len(set(each)) > 1 for each in zip(*every, strict=True)])
    return _TIME.sub(lambda found: "<time>" if next(changing) else found[0], text)


def days_around(at: float) -> tuple[str, ...]:
    """How times write the days around a moment, which is another day in other time zones."""
    middle = datetime.datetime.fromtimestamp(at, datetime.UTC).date()
    days = [middle + datetime.timedelta(days=each) for each in (-1, 0, 1)]
    words = ("%Y-%m-%d", "%b %d", "%d %b")
    # `date` fills a day of one digit with a space, and most others with a zero.
    return tuple(
        {form for day in days for word in words for form in (f"{day:{word}}", f"{day:{word}}".replace(" 0", "  "))}
    )


def masked(text: str, workspace: str, *, times: Sequence[str] = ()) -> str:
    """A text with placeholders, to be written into a scenario. Times are replaced if they contain one of `times`."""
    text = masked_like("<workspace> <run>", text, workspace)
    return _TIME.sub(lambda found: "<time>" if any(each in found[0] for each in times) else found[0], text)


def masked_value(expected: Any, actual: Any, workspace: str) -> Any:
    """An actual JSON value in which each text has the placeholders of the expected text at the same place."""
    if isinstance(expected, str) and isinstance(actual, str):
        return masked_like(expected, actual, workspace)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {key: masked_value(expected.get(key), value, workspace) for key, value in actual.items()}
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [masked_value(one, other, workspace) for one, other in zip(expected, actual, strict=True)]
    return actual
