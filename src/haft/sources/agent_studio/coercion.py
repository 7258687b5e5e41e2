"""Texts that pydantic would take for a number or a truth value, as what it would make of them.

A model says `"5"` where a template has an `int`, and pydantic turns it into 5. So does haft, before a call is judged:
rules, the person who is asked and the audit log see what the template sees. What pydantic would not turn into anything
stays as it is, and is refused by the schema.
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
"""Characters of a number."""
MOST_DIGITS: Final = 300
"""Of a whole decimal number."""
_TAKE_ANY_TEXT: Final = frozenset({"binary", "password", "path", "regex"})
"""Formats of types that make something of every text, or nearly so."""
MOST_STEPS: Final = 8
"""From one reference to the next."""


def coerce_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with each such text as the value that it stands for."""
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
    """As the first type of a union that makes something of it. A text is left to a type that keeps it a text, not to
    one that is only written as a text, such as a date: pydantic would go on to the next."""
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
    """A decimal number, where a number of JSON is the same: pydantic reads that by its digits. Else it stays a text,
    which is refused."""
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
    """A schema, or what it refers to."""
    for _ in range(MOST_STEPS):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
    return {}
