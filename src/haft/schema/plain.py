"""Checks values against very simple schemas without jsonschema-rs, because loading jsonschema-rs takes longer than most
short commands. This module can only accept a value: if it is not certain that the value fits, jsonschema-rs decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

_SAID: Final = frozenset(("type", "title", "description", "default"))
_LENGTHS: Final = frozenset(("minLength", "maxLength"))
_BOUNDS: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_KEYS: Final = {
    "string": _SAID | _LENGTHS,
    "integer": _SAID | _BOUNDS,
    "number": _SAID | _BOUNDS,
    "boolean": _SAID,
    "array": _SAID | {"items"},
    "object": _SAID | {"properties", "required", "additionalProperties"},
}
_DEEPEST: Final = 8
_EXACT: Final = 2**53
"""Every JSON parser reads integers below this exactly."""


def is_plain(schema: Any, depth: int = 0) -> bool:
    """Whether a schema is certainly valid, and has only keywords that `fits` checks."""
    if type(schema) is not dict or depth > _DEEPEST:
        return False
    kind = schema.get("type")
    if type(kind) is not str or kind not in _KEYS or not _KEYS[kind].issuperset(schema):
        return False
    if any(type(schema.get(name, "")) is not str for name in ("title", "description")):
        return False
    if "default" in schema and not _is_scalar(schema["default"]):
        return False
    if any(type(schema.get(name, 0)) is not int or schema.get(name, 0) < 0 for name in _LENGTHS):
        return False
    if any(not _is_number(schema.get(name, 0)) for name in _BOUNDS):
        return False
    if kind == "array":
        return "items" not in schema or is_plain(schema["items"], depth + 1)
    return kind != "object" or _is_plain_object(schema, depth)


def _is_plain_object(schema: Mapping[str, Any], depth: int) -> bool:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if type(properties) is not dict or type(required) is not list:
        return False
    if any(type(name) is not str for name in (*properties, *required)) or len({*required}) < len(required):
        return False
    more = schema.get("additionalProperties", True)
    return (type(more) is bool or is_plain(more, depth + 1)) and all(
        is_plain(each, depth + 1) for each in properties.values()
    )


def _is_scalar(value: Any) -> bool:
    return value is None or type(value) in (bool, str) or _is_number(value)


def _is_number(value: Any) -> bool:
    return (type(value) is int and abs(value) < _EXACT) or (type(value) is float and math.isfinite(value))


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value certainly fits a plain schema. False means only that it is not certain."""
    kind = schema["type"]
    if kind == "string":
        return (
            type(value) is str
            and value.isascii()
            and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        )
    if kind == "boolean":
        return type(value) is bool
    if kind == "array":
        return type(value) is list and "items" in schema and all(fits(schema["items"], each) for each in value)
    if kind == "object":
        return type(value) is dict and _fits_object(schema, value)
    return (type(value) is int or kind == "number") and _is_number(value) and _is_within(schema, value)


def _is_within(schema: Mapping[str, Any], value: float) -> bool:
    return (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and not ("exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"])
        and not ("exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"])
    )


def _fits_object(schema: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not all(name in value for name in schema.get("required", ())):
        return False
    for name, each in value.items():
        known = properties.get(name, more)
        if type(name) is not str or not name.isascii():
            return False
        if not (_is_json(each) if known is True else type(known) is dict and fits(known, each)):
            return False
    return True


def _is_json(value: Any, depth: int = 0) -> bool:
    """Whether a value is certainly JSON."""
    if type(value) is list:
        return depth < _DEEPEST and all(_is_json(each, depth + 1) for each in value)
    if type(value) is dict:
        return (
            depth < _DEEPEST
            and all(_is_json(each, depth + 1) for pair in value.items() for each in pair)
            and all(type(name) is str for name in value)
        )
    return _is_scalar(value) and (type(value) is not str or value.isascii())
