"""Placeholders for what differs from run to run.

If an expected text contains `<workspace>`, `<run>` or `<time>`, the same things are replaced by these words in the
actual text before both are compared. Without a placeholder nothing is replaced, so that no difference is hidden.
"""

from __future__ import annotations

import re
from typing import Any, Final

_RUN: Final = re.compile(r"\br_[0-9A-Za-z]{10,}\b")
_TIME: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z\b|UTC\b|[+-]\d\d:?\d\d\b))?)?"
)


def masked_like(expected: str, actual: str, workspace: str) -> str:
    """The actual text with those placeholders that the expected text has."""
    if "<workspace>" in expected:
        actual = actual.replace(workspace, "<workspace>")
    if "<run>" in expected:
        actual = _RUN.sub("<run>", actual)
    if "<time>" in expected:
        actual = _TIME.sub("<time>", actual)
    return actual


def masked(text: str, workspace: str, *, times: bool) -> str:
    """A text with placeholders, to be written into a scenario; for times only if `times` is set."""
    return masked_like("<workspace> <run>" + " <time>" * times, text, workspace)


def masked_value(expected: Any, actual: Any, workspace: str) -> Any:
    """An actual JSON value in which each text has the placeholders of the expected text at the same place."""
    if isinstance(expected, str) and isinstance(actual, str):
        return masked_like(expected, actual, workspace)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {key: masked_value(expected.get(key), value, workspace) for key, value in actual.items()}
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [masked_value(one, other, workspace) for one, other in zip(expected, actual, strict=True)]
    return actual
