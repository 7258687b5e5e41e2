"""Converts texts of a command line to the types in a tool's schema.

The command line calls `coerce` once for each parameter, with every text that was given for the parameter. `coerce` only
converts: a text that fits no type is an error here, but a number out of range is not, because validation checks that.
If several types are possible, string is tried last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haft.lazy import regex
from haft.schema.text import expected, in_backticks, quoted, resolve

_INTEGER: Final = regex(r"[+-]?[0-9]+")
_NUMBER: Final = regex(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ORDER: Final = ("null", "boolean", "integer", "number", "object", "array", "string")

_NOTHING: Final = object()
"""What a reader returns if the text does not have the reader's type. None would not do, because None is a value."""


def coerce(schema: Mapping[str, Any], name: str, texts: Sequence[str]) -> Any:
    """The value of parameter `name` of the tool's input `schema`, from all texts given for it.

    Raises ValueError with an explanation. A parameter that is not in the schema may have any value here; validation
    reports it later, together with all other errors.
    """
    wanted = _parameter(schema, name)
    forms = list(_forms(wanted, schema))
    try:
        value = _read(forms, texts, schema)
    except ValueError as error:
        raise ValueError(f"{in_backticks(name)}: {error}") from None
    if value is not _NOTHING:
        return value
    if not texts:
        raise ValueError(f"{in_backticks(name)} needs a value: {expected(wanted, schema)}")
    if len(texts) > 1 and not any("array" in _types(form) for form in forms):
        raise ValueError(f"{in_backticks(name)} takes one value, but is given {len(texts)} times")
    came = quoted(texts[0]) if len(texts) == 1 else quoted(list(texts))
    example = ', such as {"key": "value"}' if any("object" in _types(form) for form in forms) else ""
    raise ValueError(f"{in_backticks(name)} must be {expected(wanted, schema)}{example}, not {came}")


def _parameter(schema: Mapping[str, Any], name: str) -> Any:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    return schema.get("additionalProperties")


def _forms(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The alternatives that a schema offers, with references, `anyOf`, `oneOf` and `allOf` resolved."""
    schema = resolve(schema, root)
    if depth < 8:  # An alternative may refer back to itself.
        for key in ("anyOf", "oneOf", "allOf"):
            inner = schema.get(key)
            if isinstance(inner, list) and "type" not in schema:
                for form in inner:
                    yield from _forms(form, root, depth + 1)
                return
    yield schema


def _types(form: Mapping[str, Any]) -> Sequence[str]:
    types = form.get("type", ())
    return (types,) if isinstance(types, str) else types


def _read(forms: Sequence[Mapping[str, Any]], texts: Sequence[str], root: Mapping[str, Any]) -> Any:
    if len(texts) == 1:
        value = _read_one(forms, texts[0])
        if value is not _NOTHING:
            return value
    for form in forms:
        if "array" in _types(form) or (len(texts) > 1 and not _types(form)):
            return _read_items(form, texts, root)
    return _NOTHING


def _read_one(forms: Sequence[Mapping[str, Any]], text: str) -> Any:
    for form in forms:
        chosen = _choice(form, text)
        if chosen is not _NOTHING:
            return chosen
    open_forms = [form for form in forms if "enum" not in form and "const" not in form]
    types = {name for form in open_forms for name in _types(form)}
    if any(not _types(form) for form in open_forms):
        return _any(text)
    for name in (name for name in _ORDER if name in types):
        # `1` and `yes` mean true only if no other type is possible. Otherwise they are an integer or a string.
        value = _boolean(text) if name == "boolean" and types <= {"boolean", "null"} else _READERS[name](text)
        if value is not _NOTHING:
            return value
    return _NOTHING


def _read_items(form: Mapping[str, Any], texts: Sequence[str], root: Mapping[str, Any]) -> Any:
    first = form.get("prefixItems")
    items: list[Any] = []
    for index, text in enumerate(texts):
        wanted = first[index] if isinstance(first, list) and index < len(first) else form.get("items")
        value = _read_one(list(_forms(wanted, root)), text)
        if value is _NOTHING:
            raise ValueError(f"item {index + 1} must be {expected(wanted, root)}, not {quoted(text)}")
        items.append(value)
    return items


def _choice(form: Mapping[str, Any], text: str) -> Any:
    options = [form["const"]] if "const" in form else form.get("enum")
    if not isinstance(options, list):
        return _NOTHING
    for option in options:
        if option == text if isinstance(option, str) else json.dumps(option) == text:
            return option
    read = _json(text)
    return next((option for option in options if option == read and type(option) is type(read)), _NOTHING)


def _json(text: str) -> Any:
    """The text as strict JSON, without the extensions that Python accepts."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return _NOTHING


def _any(text: str) -> Any:
    value = _json(text)
    return text if value is _NOTHING else value


def _null(text: str) -> Any:
    return None if text == "null" else _NOTHING


def _boolean(text: str) -> Any:
    return _BOOLEANS.get(text.strip().lower(), _NOTHING)


def _strict_boolean(text: str) -> Any:
    return {"true": True, "false": False}.get(text, _NOTHING)


def _integer(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # The number has more digits than Python reads.
            return _NOTHING
    number = _number(text)
    return int(number) if isinstance(number, float) and number.is_integer() else _NOTHING


def _number(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return _integer(text)
    number = float(text) if _NUMBER.fullmatch(text) else float("inf")
    return number if number not in (float("inf"), float("-inf")) else _NOTHING


def _object(text: str) -> Any:
    value = _json(text)
    return value if isinstance(value, dict) else _NOTHING


def _array(text: str) -> Any:
    value = _json(text)
    return value if isinstance(value, list) else _NOTHING


def _string(text: str) -> Any:
    return text


_READERS: Final = {
    "null": _null,
    "boolean": _strict_boolean,
    "integer": _integer,
    "number": _number,
    "object": _object,
    "array": _array,
    "string": _string,
}
