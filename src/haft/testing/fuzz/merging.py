"""Merges JSON Schemas that hold for the same value: `$ref` with what stands beside it, and the parts of `allOf`.

A merged schema says as much as all its parts together, or less: a value that fits it need not fit all parts. Whoever
generates values from it checks them against the whole schema.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

Schema = Mapping[str, Any] | bool

_LARGER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_SMALLER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_JOINED: Final = ("anyOf", "oneOf", "if", "not", "dependentSchemas")
"""Keywords of which a schema has one: the second one of a merge goes into `allOf`."""
TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")


class References:
    """The targets of the references in one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._named: dict[str, Any] = {}
        self._note(root)

    def _note(self, value: Any) -> None:
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Mapping):
                for key, form in (("$anchor", "#{}"), ("$dynamicAnchor", "#{}"), ("$id", "{}"), ("id", "{}")):
                    if isinstance(one.get(key), str):
                        self._named.setdefault(form.format(one[key]), one)
                waiting += one.values()
            elif isinstance(one, list):
                waiting += one

    def target(self, reference: str) -> Schema | None:
        """What a reference stands for; None if this schema does not have it."""
        if reference in self._named:
            found = self._named[reference]
        else:
            place, _hash, pointer = reference.partition("#")
            found = self._named.get(place, self._root if not place else None)
            for part in pointer.split("/")[1:]:
                part = part.replace("~1", "/").replace("~0", "~").replace("%25", "%").replace("%24", "$")
                if isinstance(found, list) and part.isdecimal() and int(part) < len(found):
                    found = found[int(part)]
                else:
                    found = found.get(part) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping | bool) else None

    def followed(self, schema: Schema) -> tuple[Schema, set[str]]:
        """The schema without references and `allOf` at its top, and the references that lead nowhere."""
        lost: set[str] = set()
        for _step in range(100):
            if isinstance(schema, bool):
                return schema, lost
            refs = [key for key in ("$ref", "$dynamicRef", "$recursiveRef") if isinstance(schema.get(key), str)]
            if not refs and "allOf" not in schema:
                return schema, lost
            rest = {key: value for key, value in schema.items() if key not in (*refs, "allOf")}
            parts: list[Schema] = [rest]
            for key in refs:
                target = self.target(schema[key])
                if target is None:
                    lost.add(schema[key])
                else:
                    parts.append(target)
            parts += [each for each in schema.get("allOf", ()) if isinstance(each, Mapping | bool)]
            schema = merged(parts)
        return schema, lost  # References that lead only to each other.


def merged(parts: Iterable[Schema]) -> Schema:
    """One schema for values that fit all parts."""
    found: dict[str, Any] = {}
    for part in parts:
        if part is False:
            return False
        if part is True:
            continue
        assert isinstance(part, Mapping)
        found = _two(found, part)
    return found


def _two(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    if not one:
        return dict(other)
    found = dict(one)
    if ("if" in one) and ("if" in other):
        kept = {key: value for key, value in other.items() if key not in ("if", "then", "else")}
        moved = {key: other[key] for key in ("if", "then", "else") if key in other}
        return {**_two(one, kept), "allOf": [*one.get("allOf", ()), moved]}
    for key, value in other.items():
        if key not in found or found[key] == value:
            found[key] = value
        else:
            _joined(found, key, value)
    return found


def _joined(found: dict[str, Any], key: str, value: Any) -> None:
    """Add a keyword that is there already, with another value."""
    known = found[key]
    if key == "type":
        found[key] = [each for each in types_of(known) if each in types_of(value)] or ["none"]
    elif key == "enum":
        found[key] = [each for each in known if each in value]
    elif key in _LARGER or key in _SMALLER:
        numbers = [each for each in (known, value) if isinstance(each, int | float) and not isinstance(each, bool)]
        found[key] = (max if key in _LARGER else min)(numbers) if numbers else value
    elif key == "required":
        found[key] = [*known, *(each for each in value if each not in known)]
    elif key in ("properties", "patternProperties"):
        found[key] = {
            name: merged(each[name] for each in (known, value) if name in each) for name in {**known, **value}
        }
    elif key in ("additionalProperties", "items", "propertyNames", "contains") and _are_schemas(known, value):
        found[key] = merged((known, value))
    elif key == "multipleOf" and isinstance(known, int) and isinstance(value, int):
        found[key] = math.lcm(known, value)
    elif key == "uniqueItems":
        found[key] = known or value
    elif key in _JOINED or key == "allOf":
        more = value if key == "allOf" else [{key: value}]
        found["allOf"] = [*found.get("allOf", ()), *more]


def _are_schemas(*values: Any) -> bool:
    return all(isinstance(each, Mapping | bool) for each in values)


def types_of(value: Any) -> list[str]:
    """The value of `type` as a list. An integer is a number, too."""
    named = [value] if isinstance(value, str) else list(value)
    return [*named, *(["integer"] if "number" in named and "integer" not in named else [])]
