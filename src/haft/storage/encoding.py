"""Encodes JSON for the disk as one line of bytes, quickly.

Values come from tools: numbers beyond 64 bits, text with lone surrogates and keys that are not text are all possible.
orjson refuses some of these; the standard library can write them all, but more slowly.
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
    """Any value as one line of JSON. Dataclasses become objects; values that JSON cannot express become text; values
    that contain themselves or are nested too deeply become an ellipsis."""
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
        return int(value) if value.bit_length() < MAX_BITS else f"a number of {value.bit_length()} bits"
    if isinstance(value, float):
        return float(value) if isfinite(value) else None  # As orjson does; the database could not read NaN or infinity.
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
"""Digits that may be a number beyond 64 bits. Times in nanoseconds, which every list of changes has, do not match: they
have 19 digits."""
DEEPEST = 200
MAX_BITS = 10_000

_fragments: dict[int, tuple[object, orjson.Fragment]] = {}
_MAX_FRAGMENTS = 256
_learning = threading.Lock()


def fragment(value: object) -> object:
    """A form of an immutable value that `encode` writes quickly, because its encoding is cached: most calls have the
    same decisions and limits. If the value has a method `to_json`, the result of that method is encoded. The cache
    keeps the latest values alive, so that no other object can get the same id."""
    known = _fragments.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    to_json = getattr(value, "to_json", None)
    form = value if to_json is None else to_json()
    made = orjson.Fragment(encode(form))
    with _learning:
        if len(_fragments) >= _MAX_FRAGMENTS:
            del _fragments[next(iter(_fragments))]  # The oldest. If it is still in use, it is encoded again.
        _fragments[id(value)] = (value, made)
    return made


def decode(data: bytes | str) -> Any:
    """The value that `encode` wrote. Raises `ValueError` if the data is no JSON."""
    if _LONG_NUMBER.search(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")):
        return json.loads(data)  # orjson would read it as a float.
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data)  # Lone surrogates and long numbers, which orjson refuses to read.
