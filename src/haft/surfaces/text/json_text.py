"""JSON as text for people and programs."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


def to_json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that every parser accepts: without NaN, and valid UTF-8."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=str)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # A lone surrogate can only be written as an escape.
        text = json.dumps(_finite(value), ensure_ascii=True, indent=indent, default=str)
    return text


def _finite(value: Any) -> Any:
    """`value` with null for NaN and infinite numbers."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
