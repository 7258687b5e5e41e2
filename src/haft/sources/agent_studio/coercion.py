"""Converts texts that pydantic would convert to a number or a boolean, in the same way as pydantic.

A model may send `"5"` for an `int` of a template, and pydantic converts this text to 5. haft converts the text before
the call is decided. So rules, the audit log and the person who approves see the value that the template sees. A text
that pydantic would not convert stays unchanged, and the schema rejects it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_WHOLE: Final = re.compile(r"\s*([+-]?\d+(?:_\d+)*)(?:\.0+)?\s*", re.ASCII)
_FRACTION: Final = re.compile(r"\s*[+-]?[\d._]+(?:e[+-]?[\d_]+)?\s*", re.ASCII | re.IGNORECASE)
_TRUTH: Final = {
    **dict.fromkeys(("1", "t", "true", "y", "yes", "on"), True),
    **dict.fromkeys(("0", "f", "false", "n", "no", "off"), False),
}
LONGEST: Final = 4_000
"""The most characters of a text that is converted to a number."""
MOST_DIGITS: Final = 300
"""The most digits of a whole decimal number."""
_TAKE_ANY_TEXT: Final = frozenset({"binary", "password", "path", "regex"})
"""Formats of types that accept every text, or nearly every text."""
MOST_STEPS: Final = 8
"""The most references (`$ref`) that are followed one after the other."""


def coerce_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a call's arguments, with a converted value for each text that pydantic would convert."""
    try:
        return {**arguments, **_value(dict(arguments), schema, schema)}
    except RecursionError:
        return dict(arguments)


def _value(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, root)
    options = schema.get("anyOf")
    if isinstance(options, list):
        return _one_of(value, options, root)
    if isinstance(value, str):
        return _from_text(value, schema.get("type"), is_exact=schema.get("format") == "decimal")
    if isinstance(value, list):
        first, rest = schema.get("prefixItems", ()), schema.get("items", {})
        return [_value(one, first[at] if at < len(first) else rest, root) for at, one in enumerate(value)]
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        return {name: _value(one, known.get(name, rest), root) for name, one in value.items()}
    return value


def _one_of(value: Any, options: list[Any], root: Mapping[str, Any]) -> Any:
    """The value, converted to the first type of a union that accepts it. A text stays a text if one of the types is
    plain text. A type such as a date, whose values JSON also writes as texts, is not plain text: if the text is not a
    date, the next type is tried, as in pydantic."""
    schemas = [_resolved(option, root) for option in options]
    if isinstance(value, str):
        if any(_keeps_text(schema, value) for schema in schemas):
            return value
        for schema in schemas:
            made = _value(value, schema, root)
            if made is not value or (schema.get("type") == "string" and schema.get("format") in _TAKE_ANY_TEXT):
                return made
        return value
    kind = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else None
    fitting = [schema for schema in schemas if schema.get("type") == kind]
    return _value(value, fitting[0], root) if kind and len(fitting) == 1 else value


def _keeps_text(schema: Mapping[str, Any], text: str) -> bool:
    if "enum" in schema:
        return text in schema["enum"]
    return schema.get("type", "string") == "string" and "format" not in schema


def _from_text(text: str, kind: Any, *, is_exact: bool) -> Any:
    if kind == "boolean":
        return _TRUTH.get(text.lower(), text)
    if len(text) > LONGEST:
        return text
    if kind == "integer" and (whole := _WHOLE.fullmatch(text)) is not None:
        return int(whole[1])
    if kind == "number" and _FRACTION.fullmatch(text) is not None:
        if is_exact:
            return _exactly(text)
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
    return text


def _exactly(text: str) -> Any:
    """The decimal number in a text, as a JSON number with exactly the same digits, because pydantic reads the digits.
    If there is no such JSON number, the text itself, which the schema rejects."""
    try:
        wanted = Decimal(text.strip())
    except InvalidOperation:
        return text
    if wanted.adjusted() > MOST_DIGITS:
        return text
    if wanted == wanted.to_integral_value():
        return int(wanted)
    number = float(wanted)
    return number if Decimal(repr(number)) == wanted else text


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that a `$ref` leads to; the schema itself if it has no `$ref`; an empty schema if the `$ref` is not
    valid."""
    for _ in range(MOST_STEPS):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    return {}
