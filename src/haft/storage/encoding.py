"""JSON as it is written to disk: one line of bytes, quickly.

Values come from tools: numbers beyond 64 bits, text with lone surrogates and keys that are not text are all possible.
orjson refuses some of these; the standard library writes them all, more slowly.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import orjson


def encode(value: Any) -> bytes:
    """`value` as one line of JSON. Dataclasses become objects; what JSON has no form for is written as text."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _slowly(value).encode()


def _slowly(value: Any) -> str:
    try:
        return json.dumps(value, default=_other, separators=(",", ":"), allow_nan=False)
    except ValueError:
        # NaN and the infinities become null, as orjson has it: the database would not read them.
        plain = json.loads(json.dumps(value, default=_other), parse_constant=lambda _name: None)
        return json.dumps(plain, separators=(",", ":"))


def _other(value: Any) -> Any:
    if isinstance(value, orjson.Fragment):
        return _originals[id(value)]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else str(value)


_fragments: dict[int, tuple[object, orjson.Fragment]] = {}
_originals: dict[int, object] = {}
_MOST_FRAGMENTS = 256


def fragment(value: object) -> object:
    """A value that never changes, for `encode`, with its encoding remembered: decisions and limits are the same for
    most calls. What is remembered is held, so that its identity stays its own."""
    known = _fragments.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    if len(_fragments) >= _MOST_FRAGMENTS:
        return value
    made = orjson.Fragment(encode(value))
    _fragments[id(value)] = (value, made)
    _originals[id(made)] = value
    return made


def decode(data: bytes | str) -> Any:
    """The value that `encode` wrote. `ValueError` where it is none."""
    try:
        return orjson.loads(data)
    except ValueError:
        return json.loads(data)  # Lone surrogates and long numbers, which orjson does not take back.
