"""JSON as it is written to disk: one line of bytes, quickly.

Values come from tools: numbers beyond 64 bits, text with lone surrogates and keys that are not text are all possible.
orjson refuses some of these; the standard library writes them all, more slowly.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from math import isfinite
from typing import Any

import orjson

from haft.lazy import regex


def encode(value: Any) -> bytes:
    """`value` as one line of JSON, whatever it is. Dataclasses become objects; what JSON has no form for is written as
    text, what contains itself or goes too deep as an ellipsis."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(_plain(value, 0), separators=(",", ":")).encode()


def _plain(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        return "…"
    if value is None or isinstance(value, bool | str):
        return str.__str__(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value) if value.bit_length() < MOST_BITS else f"a number of {value.bit_length()} bits"
    if isinstance(value, float):
        return float(value) if isfinite(value) else None  # As orjson has it: the database would not read them.
    if isinstance(value, dict):
        return {_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, orjson.Fragment):
        return _plain(decode(orjson.dumps(value)), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)}
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str.__str__(value) if isinstance(value, str) else str(value)
    except Exception:
        return f"<{type(value).__name__}>"


_LONG_NUMBER = regex(rb"[0-9-][0-9]{19}")
"""What may be beyond 64 bits. Times in nanoseconds have 19 digits, and are in every list of changes."""
DEEPEST = 200
MOST_BITS = 10_000

_fragments: dict[int, tuple[object, orjson.Fragment]] = {}
_MOST_FRAGMENTS = 256
_learning = threading.Lock()


def fragment(value: object) -> object:
    """A value that never changes, for `encode`, with its encoding remembered: decisions and limits are the same for
    most calls. It is written in its own JSON form, where it has one. The latest ones are held, so that their identity
    stays their own."""
    known = _fragments.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    to_json = getattr(value, "to_json", None)
    form = value if to_json is None else to_json()
    made = orjson.Fragment(encode(form))
    with _learning:
        if len(_fragments) >= _MOST_FRAGMENTS:
            del _fragments[next(iter(_fragments))]  # The oldest. One that is still in use is learned again.
        _fragments[id(value)] = (value, made)
    return made


def decode(data: bytes | str) -> Any:
    """The value that `encode` wrote. `ValueError` where it is none."""
    if _LONG_NUMBER.search(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")):
        return json.loads(data)  # orjson would take it for a float.
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data)  # Lone surrogates and long numbers, which orjson does not take back.
